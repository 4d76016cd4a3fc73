"""A small shop, complete but for the servers: real deciders, real reactions, a model of the provider.

Nothing lies between them but messages, and every message ever sent may arrive now, later, again, or before those sent
earlier, as may every request to the provider and every answer of its. So a world is no more than the histories of its
streams: what is on its way follows from them.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from functools import reduce
from types import MappingProxyType
from typing import Any

import services.catalog.decider
import services.catalog.reactions
import services.order.decider
import services.order.process
import services.payment.decider
import services.payment.reactions
import tests.unit.order.provider
from services.order.commands import CancelOrder, ExpireOrder
from services.order.events import OrderPlaced
from services.payment.commands import RecordProviderAnswer, RefundPayment, ReviewPayment
from services.payment.risk import Allow, Hold, Refuse, Verdict
from shared.codec import to_record
from shared.errors import Refused
from tests.unit.order.provider import Answered, Ask
from tests.unit.order.shop import NOON

Decider = Any
Delivery = tuple[str, Any]
"""A stream, and what is asked of it."""

DECIDERS: Mapping[str, Decider] = MappingProxyType(
    {
        "order": services.order.decider,
        "stock": services.catalog.decider,
        "payment": services.payment.decider,
        "provider": tests.unit.order.provider,
    }
)
VERDICTS: tuple[Verdict, ...] = (Allow(), Hold(("odd",)), Refuse(("worse",)))
PROVIDER = "provider:"


class History:
    """A stream as it may come to be. It knows every way on that was ever tried, and where that led."""

    def __init__(self, decider: Decider, state: Any, events: tuple[Any, ...], sent: tuple[Delivery, ...]) -> None:
        self.decider = decider
        self.state = state
        self.events = events
        self.sent = sent + tuple(_asked_of_provider(state))
        """All it has ever sent."""
        self._by_command: dict[Any, History] = {}
        self._by_events: dict[tuple[Any, ...], History] = {}

    def after(self, command: Any) -> "History":
        """The same object where nothing happens: histories can be compared by identity."""
        if command not in self._by_command:
            events = tuple(self.decider.decide(command, self.state))
            self._by_command[command] = self.grown(events) if events else self
        return self._by_command[command]

    def grown(self, events: tuple[Any, ...]) -> "History":
        if events not in self._by_events:
            state = reduce(self.decider.evolve, events, self.state)
            sent = self.sent + tuple(delivery for event in events for delivery in heard(event))
            self._by_events[events] = History(self.decider, state, self.events + events, sent)
        return self._by_events[events]


World = Mapping[str, History]


def new_world(
    placed: Sequence[OrderPlaced], on_shelf: Sequence[Any], deciders: Mapping[str, Decider] = DECIDERS
) -> World:
    """Orders that have just been placed in a shop with these products listed."""
    started: dict[str, Any] = {f"stock:{listed.sku}": listed for listed in on_shelf}
    started |= {f"order:{order.order_id}": order for order in placed}
    world = {stream: _begun(deciders, stream).grown((event,)) for stream, event in started.items()}
    payments = [f"payment:{services.order.decider.payment_of(order.order_id)}" for order in placed]
    return world | {stream: _begun(deciders, stream) for stream in [*payments, PROVIDER]}


def _begun(deciders: Mapping[str, Decider], stream: str) -> History:
    decider = deciders[stream.partition(":")[0]]
    return History(decider, decider.initial, (), ())


def heard(event: Any) -> Iterator[Delivery]:
    """What comes of an event once it is delivered, by the reactions of every service. The verdict is anyone's guess."""
    if isinstance(event, Answered):
        answer = RecordProviderAnswer(event.kind, event.outcome, f"ref {event.key}", event.outcome)  # type: ignore[arg-type]
        yield f"payment:{event.payment_id}", answer
        return
    message = type(event).__name__, to_record(type(event))(event), "", NOON
    yield from services.order.process.react(*message)
    yield from services.catalog.reactions.react(*message)
    for verdict in VERDICTS:
        yield from services.payment.reactions.react(*message, _always(verdict))


def _always(verdict: Verdict) -> Callable[[Any], Verdict]:
    return lambda _: verdict


def _asked_of_provider(state: Any) -> Iterator[Delivery]:
    if isinstance(state, services.payment.decider.Payment) and (
        operation := services.payment.decider.next_operation(state)
    ):
        yield PROVIDER, Ask(operation, "approved")
        if operation.kind in ("authorize", "capture"):
            yield PROVIDER, Ask(operation, "declined")


def messages(world: World) -> list[Delivery]:
    """All that were ever sent, and would still make a difference. One that is refused would be a dead letter."""
    sent = dict.fromkeys(delivery for history in world.values() for delivery in history.sent)
    return [(stream, command) for stream, command in sent if world[stream].after(command) is not world[stream]]


def wishes(world: World) -> list[Delivery]:
    """What people, and the clock, may want at any time, and would be granted now."""
    granted: list[Delivery] = []
    for stream, history in world.items():
        for wish in _wishes_of(stream):
            with suppress(Refused):
                if history.after(wish) is not history:
                    granted.append((stream, wish))
    return granted


CUSTOMER = "ann"
WISHES: Mapping[str, Sequence[Any]] = MappingProxyType(
    {
        "order": (
            CancelOrder("customer", CUSTOMER),
            CancelOrder("support"),
            ExpireOrder(patience_ms=1, review_ms=1, now=NOON + 1),
        ),
        "payment": (ReviewPayment("approve"), ReviewPayment("reject"), RefundPayment()),
    }
)


def _wishes_of(stream: str) -> Sequence[Any]:
    return WISHES.get(stream.partition(":")[0], ())


def after(world: World, delivery: Delivery) -> World:
    stream, command = delivery
    return {**world, stream: world[stream].after(command)}
