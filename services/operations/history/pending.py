"""What a process still waits for: a deadline, an answer from outside, or a service that has not heard of a fact yet.

Asked of the services' own rules: a fact is outstanding where hearing it now would still lead to something.
"""

from collections.abc import AsyncIterator, Callable, Sequence
from dataclasses import asdict, dataclass
from datetime import datetime
from typing import Any

from services.cart.decider import Open
from services.catalog import reactions as stock_reactions
from services.order import process as order_process
from services.order.decider import Pending, payment_of
from services.payment import reactions as payment_reactions
from services.payment.decider import Held, next_operation
from services.payment.risk import Allow
from services.replay.related import Happened
from services.replay.rolls import Rolls, category_of, key_of
from shared.envelope import millis
from shared.errors import Refused
from shared.handler import Handled
from shared.timetravel import AsOf

LISTENING = {"cart": ("order",), "order": ("stock", "payment"), "stock": ("order",), "payment": ("order",)}
"""Who reacts to whose events."""

Reaction = Callable[[str, dict[str, Any], str, int], Sequence[tuple[str, Any]]]
REACTIONS: dict[str, Reaction] = {
    "order": order_process.react,
    "stock": stock_reactions.react,
    "payment": lambda kind, data, stream, now: payment_reactions.react(kind, data, stream, now, lambda _: Allow()),
}


@dataclass(frozen=True)
class Wait:
    what: str
    of: str
    """Who owes it; empty for a moment that will come by itself."""
    stream: str
    due: datetime | None = None
    then: str = ""
    """What happens when it is due, or what can be done."""


async def waits(rolls: Rolls, story: Sequence[Happened], stream_id: str, order_id: str | None) -> list[Wait]:
    """Of the whole process that the stream is a part of."""
    streams = {stream_id} if category_of(stream_id) != "stock" else set()
    if order_id and any(it.category == "order" for it in story):
        streams |= {f"order:{order_id}", f"payment:{payment_of(order_id)}"}
    states = {stream: await rolls[category_of(stream)].past.state(stream, AsOf()) for stream in sorted(streams)}
    found = [wait async for wait in _unheard(rolls, story)]
    for stream, handled in states.items():
        found += await _own(rolls, stream, handled)
    return found


async def _own(rolls: Rolls, stream: str, handled: Handled[Any, Any]) -> list[Wait]:
    pool = rolls[category_of(stream)].pool
    due = await pool.fetchval("SELECT due FROM deadlines WHERE stream_id = $1", stream)
    match handled.state:
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


async def _unheard(rolls: Rolls, story: Sequence[Happened]) -> AsyncIterator[Wait]:
    heard = {(it.category, it.recorded.causation_id) for it in story}
    answered = {(it.recorded.stream_id) for it in story}
    for it in story:
        for listener in LISTENING[it.category]:
            if (listener, it.recorded.event_id) in heard:
                continue
            data = asdict(it.event)
            kind = type(it.event).__name__
            for stream, command in REACTIONS[listener](kind, data, it.recorded.stream_id, millis(it.recorded.time)):
                if said := await _would_do(rolls, stream, command, stream in answered):
                    yield Wait(
                        f"{listener} to hear of {kind} ({it.recorded.stream_id}@{it.recorded.version})",
                        f"service {rolls[listener].service}",
                        stream,
                        None,
                        said,
                    )


async def _would_do(rolls: Rolls, stream: str, command: Any, has_answered: bool) -> str:
    """What hearing of it would lead to; nothing where it has been heard, or no longer matters."""
    roll = rolls[category_of(stream)]
    state = (await roll.past.state(stream, AsOf())).state
    orders = getattr(getattr(state, "shelf", None), "orders", None)
    if orders is not None and has_answered and orders.pieces(command.order_id) is None:
        return ""  # settled so long ago that the shelf has forgotten the order
    try:
        events = roll.decider.decide(command, state)
    except Refused as refused:
        return f"would be refused ({refused.message}): look into till dlq list"
    return f"leads to {', '.join(type(event).__name__ for event in events)}; see till status" if events else ""
