"""The inverse of each decider: a command found from recorded events leads to the same events again."""

from collections.abc import Iterator, Sequence
from types import ModuleType
from typing import Any, NamedTuple

import pytest

from services.cart import decider as cart
from services.cart import original_commands as cart_commands
from services.cart.commands import AbandonCart, OpenCart
from services.catalog import decider as stock
from services.catalog import original_commands as stock_commands
from services.common.money import Money
from services.common.recorded_decision import RecordedDecision
from services.order import decider as order
from services.order import original_commands as order_commands
from services.order.commands import RecordPaymentAuthorized, RecordPaymentHeld, RecordStockReserved
from services.payment import decider as payment
from services.payment import original_commands as payment_commands
from services.payment.risk import Hold
from shared.envelope import from_millis
from tests.unit.services.cart import words as cart_words
from tests.unit.services.catalog import words as stock_words
from tests.unit.services.order import words as order_words
from tests.unit.services.payment import words as payment_words

NOON = cart_words.NOON
DEADLINE, PROVIDER, SUPPORT = "system:deadline", "service:payment", "olga"
ANN = cart_words.ANN
MUG, A_MUG = cart_words.MUG, cart_words.A_MUG


class Step(NamedTuple):
    command: Any
    actor: str = ANN
    at: int = NOON
    is_reaction: bool = False


def reactions(service: str, *commands: Any) -> list[Step]:
    return [Step(command, f"service:{service}", is_reaction=True) for command in commands]


OPENED = [Step(OpenCart(ANN, NOON)), Step(cart_words.add(MUG, A_MUG))]
PLACED = reactions("order", order_words.PLACE)
RESERVED = PLACED + reactions("order", RecordStockReserved(MUG), RecordStockReserved(order_words.POT))
REQUESTED = reactions("payment", payment_words.request())
HELD = reactions("payment", payment_words.request(Hold(payment_words.ODD)))
CAPTURING = [*REQUESTED, Step(payment_words.yes("authorize"), PROVIDER), *reactions("payment", payment_words.CAPTURE)]

STORIES: dict[str, tuple[ModuleType, ModuleType, list[Step]]] = {
    "a cart that is changed and checked out": (
        cart,
        cart_commands,
        [
            *OPENED,
            Step(cart_words.set_quantity(MUG, A_MUG, 5)),
            Step(cart_words.remove(MUG)),
            Step(cart_words.add(MUG, A_MUG, 2)),
            Step(cart_words.check_out({MUG: A_MUG})),
        ],
    ),
    "a cart that is abandoned": (
        cart,
        cart_commands,
        [*OPENED, Step(AbandonCart(1, cart_words.LATER + 7), DEADLINE, cart_words.LATER + 7)],
    ),
    "a product that is listed, changed, withdrawn and relisted": (
        stock,
        stock_commands,
        [
            Step(stock_words.put()),
            Step(stock_words.put(name="Mug", price=Money(990, "EUR"), stock=7)),
            Step(stock_words.WITHDRAW),
            Step(stock_words.put(stock=12)),
        ],
    ),
    "an order cancelled by its customer": (order, order_commands, [*PLACED, Step(order_words.BY_ANN)]),
    "an order cancelled by support": (order, order_commands, [*PLACED, Step(order_words.BY_SUPPORT, SUPPORT)]),
    "a confirmed order cancelled by support": (
        order,
        order_commands,
        [*RESERVED, *reactions("order", RecordPaymentAuthorized()), Step(order_words.BY_SUPPORT, SUPPORT)],
    ),
    "an order that took too long": (
        order,
        order_commands,
        [*PLACED, Step(order_words.expire(NOON + order_words.MINUTE), DEADLINE, NOON + order_words.MINUTE)],
    ),
    "a review that took too long": (
        order,
        order_commands,
        [
            *RESERVED,
            *reactions("order", RecordPaymentHeld(NOON)),
            Step(order_words.expire(NOON + order_words.HOUR), DEADLINE, NOON + order_words.HOUR),
        ],
    ),
    "a payment that is captured and refunded": (
        payment,
        payment_commands,
        [
            *CAPTURING,
            Step(payment_words.yes("capture"), PROVIDER),
            Step(payment_words.REFUND, SUPPORT),
            Step(payment_words.yes("refund"), PROVIDER),
        ],
    ),
    "a payment that the provider declines": (
        payment,
        payment_commands,
        [*REQUESTED, Step(payment_words.no("authorize"), PROVIDER)],
    ),
    "a capture that the provider declines": (
        payment,
        payment_commands,
        [*CAPTURING, Step(payment_words.no("capture"), PROVIDER), Step(payment_words.yes("void"), PROVIDER)],
    ),
    "a held payment that is approved": (payment, payment_commands, [*HELD, Step(payment_words.APPROVE, SUPPORT)]),
    "a held payment that is rejected": (payment, payment_commands, [*HELD, Step(payment_words.REJECT, SUPPORT)]),
}


def recorded(decider: Any, steps: Sequence[Step]) -> Iterator[tuple[RecordedDecision, Step]]:
    state, version = decider.initial, 0
    for step in steps:
        events = decider.decide(step.command, state)
        assert events, f"{step.command} has no event"
        yield RecordedDecision("stream", version + 1, from_millis(step.at), step.actor, "", state, events), step
        version += len(events)
        for event in events:
            state = decider.evolve(state, event)


@pytest.mark.parametrize("story", STORIES)
def test_the_original_command_leads_to_the_recorded_events_again(story: str) -> None:
    decider, inverse, steps = STORIES[story]
    for decision, step in recorded(decider, steps):
        command = inverse.original_command(decision)
        if step.is_reaction:
            assert command is None, "a reaction is found from its cause, not from its events"
        else:
            assert decider.decide(command, decision.state) == decision.events
