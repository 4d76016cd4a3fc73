"""The risk check comes first: a payment is authorised, held for review, or declined."""

import pytest

from services.payment.commands import Command
from services.payment.events import Event
from services.payment.risk import Hold, Refuse
from tests.unit.services.payment.words import (
    APPROVE,
    APPROVED,
    AUTHORIZED,
    AUTHORIZING,
    CANCELLED,
    CAPTURE,
    CAPTURED,
    CAPTURING,
    HELD,
    ODD,
    REFUND,
    REFUNDED,
    REFUNDING,
    REJECT,
    VOIDED,
    VOIDING,
    declined,
    given,
    no,
    request,
    yes,
)


def test_a_payment_that_looks_fine_is_authorised() -> None:
    given().when(request()).then(AUTHORIZING)


def test_a_payment_that_looks_odd_is_held_before_the_provider_is_asked() -> None:
    given().when(request(Hold(ODD))).then(HELD)


def test_a_payment_that_looks_bad_is_declined_before_the_provider_is_asked() -> None:
    given().when(request(Refuse(ODD))).then(declined("risk", *ODD))


@pytest.mark.parametrize(
    "history",
    [
        [AUTHORIZING],
        [HELD],
        [declined("risk")],
        [AUTHORIZING, declined("provider")],
        [AUTHORIZING, AUTHORIZED],
        [AUTHORIZING, AUTHORIZED, CAPTURING, CAPTURED],
        [AUTHORIZING, AUTHORIZED, VOIDING, VOIDED],
        [AUTHORIZING, AUTHORIZED, CAPTURING, CAPTURED, REFUNDING, REFUNDED],
        [HELD, CANCELLED],
    ],
)
def test_a_payment_is_asked_for_once(history: list[Event]) -> None:
    given(*history).when(request()).nothing()
    given(*history).when(request(Refuse(ODD))).nothing()


def test_a_request_that_arrives_after_the_cancel_is_ignored() -> None:
    given(CANCELLED).when(request()).nothing()
    given(CANCELLED).when(request(Hold(ODD))).nothing()


def test_support_lets_a_held_payment_pass() -> None:
    given(HELD).when(APPROVE).then(APPROVED, AUTHORIZING)
    given(HELD, APPROVED, AUTHORIZING).when(yes("authorize")).then(AUTHORIZED)


def test_support_rejects_a_held_payment() -> None:
    given(HELD).when(REJECT).then(declined("review", "rejected in review"))


@pytest.mark.parametrize("decision", [APPROVE, REJECT])
@pytest.mark.parametrize(
    "history", [[AUTHORIZING], [HELD, APPROVED, AUTHORIZING], [HELD, declined("review")], [HELD, CANCELLED]]
)
def test_only_a_held_payment_is_reviewed(history: list[Event], decision: Command) -> None:
    given(*history).when(decision).refused("payment-not-held")


@pytest.mark.parametrize("command", [CAPTURE, REFUND, APPROVE, REJECT, yes("authorize"), no("refund")])
def test_a_payment_nobody_asked_for_is_unknown(command: Command) -> None:
    given().when(command).refused("payment-unknown")
    given(CANCELLED).when(command).refused("payment-unknown")
