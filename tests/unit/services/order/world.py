"""A small shop without servers: the real deciders and reactions, and a model of the provider.

Messages travel between them. Each is sure to arrive, but in any order, even within one topic (a dead letter may be
retried much later), and any number of times. The provider is asked until it answers; each request may be slow to
reach it, and each answer slow to come back.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from functools import cache, partial, reduce
from types import MappingProxyType
from typing import Any, NamedTuple

import services.catalog.decider
import services.catalog.reactions
import services.order.decider
import services.order.reactions
import services.payment.decider
import services.payment.reactions
import tests.unit.services.order.provider
from services.catalog.events import ProductListed
from services.common.money import Money
from services.order.commands import CancelOrder, ExpireOrder
from services.order.decider import payment_of
from services.order.events import Line, OrderPlaced
from services.payment.commands import RecordProviderAnswer, RefundPayment, ReviewPayment
from services.payment.decider import next_operation
from services.payment.risk import Allow, Hold, Refuse, Verdict
from shared.errors import Refused
from shared.messaging.incoming import Incoming
from shared.schemas.records import to_record
from tests.unit.services.order.provider import Answered, Ask
from tests.unit.services.order.words import ANN, CART, NOON

Decider = Any
Deciders = Mapping[str, Decider]

DECIDERS: Deciders = MappingProxyType(
    {
        "order": services.order.decider,
        "stock": services.catalog.decider,
        "payment": services.payment.decider,
        "provider": tests.unit.services.order.provider,
    }
)
EXPIRE = ExpireOrder(patience_ms=1, review_ms=1, now=NOON + 1)
WISHES: Mapping[str, Sequence[Any]] = MappingProxyType(
    {
        "order": (CancelOrder("customer", ANN), CancelOrder("support"), EXPIRE),
        "payment": (ReviewPayment("approve"), ReviewPayment("reject"), RefundPayment()),
    }
)
VERDICTS: tuple[Verdict, ...] = (Allow(), Hold(("odd",)), Refuse(("very odd",)))
PROVIDER = "provider:"
PRICE = Money(1000, "EUR")


class Message:
    """A message to a stream. It becomes any one of its commands: the choice depends on parts that are not modelled."""

    def __init__(self, stream: str, commands: tuple[Any, ...], is_kept: bool) -> None:
        self.stream = stream
        self.commands = commands
        self.is_kept = is_kept
        """True for a message in a topic, which is certain to arrive. Others may get lost and are sent again."""


message = cache(Message)
"""Every message once: the same message is the same object, however it was sent."""


class History:
    """A stream after some events. It caches each continuation, so the same events are the same object."""

    def __init__(self, decider: Decider, state: Any, events: tuple[Any, ...], sent: tuple[Message, ...]) -> None:
        self.decider = decider
        self.state = state
        self.events = events
        self.sent = (*sent, *asked_of_provider(state))
        """Every message that the stream has sent."""
        self._by_command: dict[Any, History] = {}
        self._by_events: dict[tuple[Any, ...], History] = {}

    def after(self, command: Any) -> "History":
        """Returns the stream after the command, or itself if the command changes nothing."""
        if command not in self._by_command:
            events = tuple(self.decider.decide(command, self.state))
            self._by_command[command] = self.grown(events) if events else self
        return self._by_command[command]

    def grown(self, events: tuple[Any, ...]) -> "History":
        if events not in self._by_events:
            state = reduce(self.decider.evolve, events, self.state)
            sent = (*self.sent, *(it for event in events for it in messages_of(event)))
            self._by_events[events] = History(self.decider, state, self.events + events, sent)
        return self._by_events[events]


class World(NamedTuple):
    streams: Mapping[str, History]
    delivered: frozenset[Message]

    @property
    def identity(self) -> tuple[Any, ...]:
        return self.delivered, *self.streams.values()

    def sent(self) -> Iterable[Message]:
        return dict.fromkeys(it for history in self.streams.values() for it in history.sent)


class Step(NamedTuple):
    stream: str
    command: Any
    message: Message | None = None


def new_world(orders: Sequence[OrderPlaced], supplied: Mapping[str, int], deciders: Deciders = DECIDERS) -> World:
    """Returns the world in which these orders were just placed and no message has arrived."""
    begun = {category: History(it, it.initial, (), ()) for category, it in deciders.items()}
    placed = {f"order:{order.order_id}": begun["order"].grown((order,)) for order in orders}
    paid = {f"payment:{payment_of(order.order_id)}": begun["payment"] for order in orders}
    listed = [ProductListed(sku, sku.title(), PRICE, count) for sku, count in supplied.items()]
    shelves = {f"stock:{product.sku}": begun["stock"].grown((product,)) for product in listed}
    return World({**placed, **shelves, **paid, PROVIDER: begun["provider"]}, frozenset())


def placed(order_id: str, pieces: Mapping[str, int]) -> OrderPlaced:
    lines = tuple(Line(sku, sku.title(), quantity, PRICE) for sku, quantity in pieces.items())
    total = PRICE.times(sum(pieces.values()))
    return OrderPlaced(order_id, CART, ANN, lines, total, "tok_ok", "standard", "sealed", NOON)


def messages_of(event: Any) -> Iterator[Message]:
    """Yields the messages that an event leads to. Every verdict of the risk check is possible."""
    if isinstance(event, Answered):
        answer = RecordProviderAnswer(event.kind, event.outcome, reference=event.key, reason="no money")
        yield message(f"payment:{event.payment_id}", (answer,), False)
        return
    incoming = Incoming(type(event).__name__, "", 1, to_record(type(event))(event))
    for stream, command in services.order.reactions.react(incoming, NOON) + services.catalog.reactions.react(
        incoming, NOON
    ):
        yield message(stream, (command,), True)
    guesses = [services.payment.reactions.react(incoming, NOON, partial(_guess, verdict)) for verdict in VERDICTS]
    for reactions in zip(*guesses, strict=True):
        [stream] = {stream for stream, _ in reactions}
        yield message(stream, tuple(dict.fromkeys(command for _, command in reactions)), True)


def _guess(verdict: Verdict, _attempt: object) -> Verdict:
    return verdict


def asked_of_provider(state: Any) -> Iterator[Message]:
    """Yields the request to the provider, with its possible answers: a void or a refund is always approved."""
    if isinstance(state, services.payment.decider.Payment) and (operation := next_operation(state)):
        yes, no = Ask(operation, "approved"), Ask(operation, "declined")
        yield message(PROVIDER, (yes, no) if operation.kind in ("authorize", "capture") else (yes,), False)


def arrivals(world: World) -> list[Step]:
    """Returns the messages that may arrive next: those not delivered yet, and those that would take effect again.

    None of their commands may be refused: a refused one would become a dead letter.
    """
    return [
        Step(it.stream, command, it)
        for it in world.sent()
        for command in it.commands
        if (it.is_kept and it not in world.delivered) or makes_a_difference(world, it.stream, command)
    ]


def wishes(world: World) -> list[Step]:
    """Returns the commands of a person or of the clock that would take effect now."""
    granted: list[Step] = []
    for stream in world.streams:
        for wish in WISHES.get(stream.partition(":")[0], ()):
            with suppress(Refused):
                if makes_a_difference(world, stream, wish):
                    granted.append(Step(stream, wish))
    return granted


def anything(world: World) -> list[Step]:
    return arrivals(world) + wishes(world)


def is_at_rest(world: World) -> bool:
    """Tells whether every message has arrived and the provider has answered everything."""
    return all(step.message in world.delivered for step in arrivals(world))


def makes_a_difference(world: World, stream: str, command: Any) -> bool:
    history = world.streams[stream]
    return history.after(command) is not history


def after(world: World, step: Step) -> World:
    delivered = world.delivered | {step.message} if step.message and step.message.is_kept else world.delivered
    return World({**world.streams, step.stream: world.streams[step.stream].after(step.command)}, delivered)
