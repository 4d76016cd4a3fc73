"""An operation stays outstanding until the provider has answered, and its answer counts once."""

import pytest

from services.payment.commands import Kind
from services.payment.decider import Operation, initial, next_operation
from services.payment.events import Event
from tests.unit.services.payment.words import (
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
def test_no_operation_is_outstanding_in_any_other_state(history: list[Event]) -> None:
    assert next_operation(given(*history).state) is None
    assert next_operation(initial) is None


def test_an_authorisation_is_approved_or_declined() -> None:
    given(AUTHORIZING).when(yes("authorize")).then(AUTHORIZED)
    given(AUTHORIZING).when(no("authorize")).then(declined("provider", "no money"))


def test_the_payment_is_captured_when_the_order_is_confirmed() -> None:
    given(AUTHORIZING, AUTHORIZED).when(CAPTURE).then(CAPTURING)
    given(AUTHORIZING, AUTHORIZED, CAPTURING).when(yes("capture")).then(CAPTURED)


def test_a_payment_that_cannot_be_captured_is_voided_at_once() -> None:
    given(AUTHORIZING, AUTHORIZED, CAPTURING).when(no("capture", "too late")).then(CAPTURE_DECLINED, VOIDING)


def test_a_void_and_a_refund_are_confirmed() -> None:
    given(AUTHORIZING, AUTHORIZED, VOIDING).when(yes("void")).then(VOIDED)
    given(AUTHORIZING, AUTHORIZED, CAPTURING, CAPTURED, REFUNDING).when(yes("refund")).then(REFUNDED)


def test_a_refused_void_or_refund_stays_outstanding() -> None:
    given(AUTHORIZING, AUTHORIZED, VOIDING).when(no("void")).nothing()
    given(AUTHORIZING, AUTHORIZED, CAPTURING, CAPTURED, REFUNDING).when(no("refund")).nothing()


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(("wanted", "history"), OUTSTANDING)
def test_an_answer_to_another_operation_is_ignored(wanted: Kind, history: list[Event], kind: Kind) -> None:
    if kind != wanted:
        given(*history).when(yes(kind)).nothing()
        given(*history).when(no(kind)).nothing()


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("history", SETTLED)
def test_a_repeated_answer_makes_no_difference(history: list[Event], kind: Kind) -> None:
    given(*history).when(yes(kind)).nothing()
    given(*history).when(no(kind)).nothing()


def test_a_capture_is_asked_for_once() -> None:
    given(AUTHORIZING, AUTHORIZED, CAPTURING).when(CAPTURE).nothing()
    given(AUTHORIZING, AUTHORIZED, CAPTURING, CAPTURED).when(CAPTURE).nothing()


@pytest.mark.parametrize("history", [[HELD], [AUTHORIZING], [AUTHORIZING, declined("provider")]])
def test_a_payment_that_is_not_authorised_cannot_be_captured(history: list[Event]) -> None:
    given(*history).when(CAPTURE).refused("payment-not-authorized")
