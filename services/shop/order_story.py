"""The story of an order: its events in the streams of cart, order, stock and payment, each effect after its cause."""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from datetime import datetime
from heapq import heapify, heappop, heappush
from typing import Any, NamedTuple

from services.order.decider import payment_of
from shared.envelope import Recorded
from shared.store.event_store import EventStore


class Source(NamedTuple):
    """Reads the events of one service, whether it runs or is only opened for reading."""

    store: EventStore
    decode: Callable[[bytes], Awaitable[Any]]


Sources = Mapping[str, Source]
"""Sources by category of streams: cart, order, payment, stock."""


class StoryEvent(NamedTuple):
    """A recorded event with its decoded data."""

    category: str
    recorded: Recorded
    event: Any


async def read_order_story(sources: Sources, order_id: str) -> list[StoryEvent]:
    """Returns the events of all services that belong to an order; none if there is no such order."""
    story = await read_stream_events(sources, "order", order_id)
    if not story:
        return []
    placed = story[0].event
    # A product's stream holds the events of all orders. The database filters them by correlation id, but
    # clients choose it and may use one for several requests, so the order id decides.
    requests = sorted({it.recorded.correlation_id for it in story})
    story += await read_stream_events(sources, "cart", placed.cart_id)
    story += await read_stream_events(sources, "payment", payment_of(order_id))
    for line in placed.lines:
        stock = await read_stream_events(sources, "stock", line.sku, requests)
        story += [it for it in stock if getattr(it.event, "order_id", None) == order_id]
    return sort_by_cause(story)


async def find_order_id(sources: Sources, category: str, key: str) -> str | None:
    """Returns the order that a cart became, or that a payment is for."""
    if category == "order":
        return key
    events = [it.event for it in await read_stream_events(sources, category, key)]
    return next((event.order_id for event in reversed(events) if hasattr(event, "order_id")), None)


async def read_stream_events(
    sources: Sources, category: str, key: str, correlation_ids: Sequence[str] | None = None
) -> list[StoryEvent]:
    source = sources[category]
    found = await source.store.history(f"{category}:{key}", correlation_ids=correlation_ids)
    return [StoryEvent(category, recorded, await source.decode(recorded.value)) for recorded in found]


def sort_by_cause(story: Sequence[StoryEvent]) -> list[StoryEvent]:
    """Sorts events by time, but never an effect before its cause, nor a version before the one it follows.

    Time alone is not enough, because the clocks of services may disagree.
    """
    by_name = {name: n for n, it in enumerate(story) for name in (it.recorded.event_id, _position(it.recorded, 0))}
    followers: dict[int, list[int]] = {}
    predecessors = [0] * len(story)
    for n, it in enumerate(story):
        names = it.recorded.causation_id, _position(it.recorded, -1)
        for before in {by_name[name] for name in names if name in by_name} - {n}:
            followers.setdefault(before, []).append(n)
            predecessors[n] += 1

    def sort_key(n: int) -> tuple[datetime, int, int]:
        return story[n].recorded.time, story[n].recorded.version, n

    ready = [sort_key(n) for n in range(len(story)) if not predecessors[n]]
    heapify(ready)
    done: list[StoryEvent] = []
    while ready:
        *_, n = heappop(ready)
        done.append(story[n])
        for follower in followers.get(n, ()):
            predecessors[follower] -= 1
            if not predecessors[follower]:
                heappush(ready, sort_key(follower))
    return done


def _position(recorded: Recorded, step: int) -> str:
    return f"{recorded.stream_id}@{recorded.version + step}"
