"""What is wanted of the provider stays wanted until it has answered; its answer counts once."""

import pytest

from services.payment.commands import Kind
from services.payment.decider import Operation, initial, next_operation
from services.payment.events import Event
from tests.unit.payment.till import (
    AUTHORIZED,
    AUTHORIZING,
    CANCELLED,
    CAPTURE,
    CAPTURE_DECLINED,
    CAPTURED,
    CAPTURING,
    CHARGE,
    HELD,
    PAYMENT,
    REFUNDED,
    REFUNDING,
    VOIDED,
    VOIDING,
    declined,
    given,
    no,
    yes,
)

OUTSTANDING: list[tuple[Kind, list[Event]]] = [
    ("authorize", [AUTHORIZING]),
    ("authorize", [AUTHORIZING, CANCELLED]),
    ("capture", [AUTHORIZING, AUTHORIZED, CAPTURING]),
    ("capture", [AUTHORIZING, AUTHORIZED, CAPTURING, CANCELLED]),
    ("void", [AUTHORIZING, AUTHORIZED, VOIDING]),
    ("void", [AUTHORIZING, AUTHORIZED, CAPTURING, CAPTURE_DECLINED, VOIDING]),
    ("refund", [AUTHORIZING, AUTHORIZED, CAPTURING, CAPTURED, REFUNDING]),
]
SETTLED: list[list[Event]] = [
    [HELD],
    [HELD, CANCELLED],
    [declined("risk")],
    [AUTHORIZING, declined("provider")],
    [AUTHORIZING, AUTHORIZED],
    [AUTHORIZING, AUTHORIZED, CAPTURING, CAPTURED],
    [AUTHORIZING, AUTHORIZED, VOIDING, VOIDED],
    [AUTHORIZING, AUTHORIZED, CAPTURING, CAPTURED, REFUNDING, REFUNDED],
]
KINDS: list[Kind] = ["authorize", "capture", "void", "refund"]


@pytest.mark.parametrize(("kind", "history"), OUTSTANDING)
def test_the_state_says_what_the_provider_is_to_be_asked(kind: Kind, history: list[Event]) -> None:
    operation = next_operation(given(*history).state)
    assert operation == Operation(kind, CHARGE)
    assert operation.key == f"{PAYMENT}:{kind}"


@pytest.mark.parametrize("history", SETTLED)
def test_nothing_is_wanted_of_the_provider_otherwise(history: list[Event]) -> None:
    assert next_operation(given(*history).state) is None
    assert next_operation(initial) is None


def test_an_authorisation_is_approved_or_declined() -> None:
    given(AUTHORIZING).when(yes("authorize")).then(AUTHORIZED)
    given(AUTHORIZING).when(no("authorize")).then(declined("provider", "no money"))


def test_the_money_is_taken_when_the_order_is_confirmed() -> None:
    given(AUTHORIZING, AUTHORIZED).when(CAPTURE).then(CAPTURING)
    given(AUTHORIZING, AUTHORIZED, CAPTURING).when(yes("capture")).then(CAPTURED)


def test_what_cannot_be_captured_is_let_go_at_once() -> None:
    given(AUTHORIZING, AUTHORIZED, CAPTURING).when(no("capture", "too late")).then(CAPTURE_DECLINED, VOIDING)


def test_a_void_and_a_refund_are_confirmed() -> None:
    given(AUTHORIZING, AUTHORIZED, VOIDING).when(yes("void")).then(VOIDED)
    given(AUTHORIZING, AUTHORIZED, CAPTURING, CAPTURED, REFUNDING).when(yes("refund")).then(REFUNDED)


def test_what_we_owe_the_customer_stays_owed_when_the_provider_says_no() -> None:
    given(AUTHORIZING, AUTHORIZED, VOIDING).when(no("void")).nothing()
    given(AUTHORIZING, AUTHORIZED, CAPTURING, CAPTURED, REFUNDING).when(no("refund")).nothing()


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(("wanted", "history"), OUTSTANDING)
def test_an_answer_to_something_else_is_old_news(wanted: Kind, history: list[Event], kind: Kind) -> None:
    if kind != wanted:
        given(*history).when(yes(kind)).nothing()
        given(*history).when(no(kind)).nothing()


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("history", SETTLED)
def test_an_answer_heard_again_makes_no_difference(history: list[Event], kind: Kind) -> None:
    given(*history).when(yes(kind)).nothing()
    given(*history).when(no(kind)).nothing()


def test_a_capture_is_asked_for_once() -> None:
    given(AUTHORIZING, AUTHORIZED, CAPTURING).when(CAPTURE).nothing()
    given(AUTHORIZING, AUTHORIZED, CAPTURING, CAPTURED).when(CAPTURE).nothing()


@pytest.mark.parametrize("history", [[HELD], [AUTHORIZING], [AUTHORIZING, declined("provider")]])
def test_what_is_not_authorised_cannot_be_captured(history: list[Event]) -> None:
    given(*history).when(CAPTURE).refused("payment-not-authorized")
