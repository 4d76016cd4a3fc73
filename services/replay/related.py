"""The story of an order, told from the streams of all services at once: cart, order, stock and payment."""

from collections.abc import Mapping, Sequence
from datetime import datetime
from heapq import heapify, heappop, heappush
from typing import Any, NamedTuple, Protocol

from services.order.decider import payment_of
from shared.envelope import Recorded
from shared.store import EventStore


class Memory(Protocol):
    async def decode(self, value: bytes) -> Any: ...


class Source(Protocol):
    """A service that can be asked for what happened: running, or opened for reading alone."""

    @property
    def store(self) -> EventStore: ...
    @property
    def memory(self) -> Memory: ...


class Happened(NamedTuple):
    category: str
    recorded: Recorded
    event: Any


Sources = Mapping[str, Source]
"""By category of streams."""


async def story_of_order(sources: Sources, order_id: str) -> list[Happened]:
    """Nothing where there is no such order."""
    told = await told_by(sources, "order", order_id)
    if not told:
        return []
    placed = told[0].event
    # A product's stream has the events of all orders. Requests alone do not tell them apart: who asks may name
    # several requests alike.
    requests = sorted({happened.recorded.correlation_id for happened in told})
    told += await told_by(sources, "cart", placed.cart_id)
    told += await told_by(sources, "payment", payment_of(order_id))
    for line in placed.lines:
        stock = await told_by(sources, "stock", line.sku, requests)
        told += [happened for happened in stock if getattr(happened.event, "order_id", None) == order_id]
    return in_order(told)


async def order_of(sources: Sources, category: str, key: str) -> str | None:
    """The order that a cart became, or that a payment is for."""
    if category == "order":
        return key
    events = [happened.event for happened in await told_by(sources, category, key)]
    return next((event.order_id for event in reversed(events) if hasattr(event, "order_id")), None)


async def told_by(sources: Sources, category: str, key: str, requests: Sequence[str] | None = None) -> list[Happened]:
    source = sources[category]
    found = await source.store.history(f"{category}:{key}", correlation_ids=requests)
    return [Happened(category, recorded, await source.memory.decode(recorded.value)) for recorded in found]


def in_order(told: Sequence[Happened]) -> list[Happened]:
    """By time, yet never an effect before its cause, nor a version before the one it follows: clocks may disagree."""
    by_name = {name: n for n, it in enumerate(told) for name in (it.recorded.event_id, _place(it.recorded, 0))}
    effects: dict[int, list[int]] = {}
    missing = [0] * len(told)
    for n, it in enumerate(told):
        names = it.recorded.causation_id, _place(it.recorded, -1)
        for before in {by_name[name] for name in names if name in by_name} - {n}:
            effects.setdefault(before, []).append(n)
            missing[n] += 1

    def ready(n: int) -> tuple[datetime, int, int]:
        return told[n].recorded.time, told[n].recorded.version, n

    waiting = [ready(n) for n in range(len(told)) if not missing[n]]
    heapify(waiting)
    done: list[Happened] = []
    while waiting:
        *_, n = heappop(waiting)
        done.append(told[n])
        for effect in effects.get(n, ()):
            missing[effect] -= 1
            if not missing[effect]:
                heappush(waiting, ready(effect))
    return done


def _place(recorded: Recorded, step: int) -> str:
    return f"{recorded.stream_id}@{recorded.version + step}"
