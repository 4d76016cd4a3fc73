"""Finds what a process still waits for: a deadline, an answer from outside, or a service that is yet to react.

The services' own rules decide that: an event is outstanding where a reaction to it would still lead to something.
"""

from collections.abc import AsyncIterator, Callable, Sequence
from dataclasses import asdict, dataclass
from datetime import datetime
from typing import Any

from services.cart.decider import Open
from services.catalog import reactions as stock_reactions
from services.operations.reading.stores import Stores, category_of, key_of, store_of
from services.order import reactions as order_reactions
from services.order.decider import Pending, payment_of
from services.payment import reactions as payment_reactions
from services.payment.decider import Held, next_operation
from services.payment.risk import Allow
from services.shop.order_story import StoryEvent
from shared.decider import Versioned
from shared.envelope import millis
from shared.errors import Refused
from shared.messaging.incoming import Incoming
from shared.store.time_travel import AsOf

REACTING = {"cart": ("order",), "order": ("stock", "payment"), "stock": ("order",), "payment": ("order",)}
"""The categories that react to events of a category. A test compares this with the services' wiring."""

Reaction = Callable[[Incoming, int], Sequence[tuple[str, Any]]]
REACTIONS: dict[str, Reaction] = {
    "order": order_reactions.react,
    "stock": stock_reactions.react,
    "payment": lambda message, at: payment_reactions.react(message, at, lambda _: Allow()),
}


@dataclass(frozen=True)
class Wait:
    """Something a process waits for, as `till why` prints it."""

    what: str
    of: str
    """The service or person that has to act; empty for a deadline."""
    stream: str
    due: datetime | None = None
    then: str = ""
    """The consequence when it is due, or the remedy."""


async def find_waits(stores: Stores, story: Sequence[StoryEvent], stream_id: str, order_id: str | None) -> list[Wait]:
    """Finds what the whole process waits for that the stream is a part of."""
    streams = {stream_id} if category_of(stream_id) != "stock" else set()
    if order_id and any(it.category == "order" for it in story):
        streams |= {f"order:{order_id}", f"payment:{payment_of(order_id)}"}
    found = [wait async for wait in _missing_reactions(stores, story)]
    for stream in sorted(streams):
        found += await _own_waits(stores, stream, await store_of(stores, stream).past.state(stream, AsOf()))
    return found


async def _own_waits(stores: Stores, stream: str, current: Versioned[Any]) -> list[Wait]:
    """Returns what the state of one stream waits for."""
    pool = store_of(stores, stream).pool
    due = await pool.fetchval("SELECT due FROM deadlines WHERE stream_id = $1", stream)
    match current.state:
        case Open():
            return [Wait("a next step", "the customer", stream, due, "left alone until then, it is abandoned")]
        case Held():
            how = f"POST /v1/payments/{key_of(stream)}/review"
            return [Wait("a review of the payment", "support", stream, None, how)]
        case state if isinstance(state, Pending):
            return [Wait("its deadline", "", stream, due, "not final by then, it is cancelled (timeout)")]
        case state if category_of(stream) == "payment" and (operation := next_operation(state)):
            what = f"the answer to {operation.kind} {operation.charge.amount}"
            return [Wait(what, "the payment provider", stream, due, "it is asked again, with the same key")]
        case _:
            return []


async def _missing_reactions(stores: Stores, story: Sequence[StoryEvent]) -> AsyncIterator[Wait]:
    """Yields a wait for each event that a service has not reacted to, although its rules would."""
    reacted = {(it.category, it.recorded.causation_id) for it in story}
    streams = {it.recorded.stream_id for it in story}
    for it in story:
        for listener in REACTING[it.category]:
            if (listener, it.recorded.event_id) in reacted:
                continue
            kind, recorded = type(it.event).__name__, it.recorded
            message = Incoming(kind, recorded.stream_id, recorded.version, asdict(it.event))
            for stream, command in REACTIONS[listener](message, millis(recorded.time)):
                if outcome := await _would_lead_to(stores, stream, command, has_events=stream in streams):
                    yield Wait(
                        f"{listener} to react to {kind} ({recorded.stream_id}@{recorded.version})",
                        f"service {store_of(stores, stream).service}",
                        stream,
                        None,
                        outcome,
                    )


async def _would_lead_to(stores: Stores, stream: str, command: Any, has_events: bool) -> str:
    """Describes what the command would do now; empty where it was done already, or no longer matters."""
    store = store_of(stores, stream)
    state = (await store.past.state(stream, AsOf())).state
    orders = getattr(getattr(state, "shelf", None), "orders", None)
    if orders is not None and has_events and orders.of(command.order_id) is None:
        return ""  # settled so long ago that the shelf no longer remembers the order
    try:
        events = store.decider.decide(command, state)
    except Refused as refused:
        return f"would be refused ({refused.message}); see till dlq list"
    return f"leads to {', '.join(type(event).__name__ for event in events)}; see till status" if events else ""
