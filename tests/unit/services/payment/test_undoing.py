"""Compensation: after a cancelled order all money goes back, at whichever moment the cancel arrives."""

import pytest

from services.payment.events import Event
from tests.unit.services.payment.words import (
    AUTHORIZED,
    AUTHORIZING,
    CANCEL,
    CANCELLED,
    CAPTURE,
    CAPTURE_DECLINED,
    CAPTURED,
    CAPTURING,
    HELD,
    REFUND,
    REFUNDED,
    REFUNDING,
    VOIDED,
    VOIDING,
    declined,
    given,
    no,
    yes,
)


def test_a_payment_cancelled_before_its_request_is_never_requested() -> None:
    given().when(CANCEL).then(CANCELLED)


def test_a_held_payment_of_a_cancelled_order_is_cancelled() -> None:
    given(HELD).when(CANCEL).then(CANCELLED)


def test_an_authorised_payment_is_voided() -> None:
    given(AUTHORIZING, AUTHORIZED).when(CANCEL).then(VOIDING)


def test_a_captured_payment_is_refunded() -> None:
    given(AUTHORIZING, AUTHORIZED, CAPTURING, CAPTURED).when(CANCEL).then(REFUNDING)


def test_a_cancel_is_remembered_while_the_authorisation_is_outstanding() -> None:
    given(AUTHORIZING).when(CANCEL).then(CANCELLED)
    given(AUTHORIZING, CANCELLED).when(yes("authorize")).then(AUTHORIZED, VOIDING)
    given(AUTHORIZING, CANCELLED).when(no("authorize")).then(declined("provider", "no money"))


def test_a_cancel_is_remembered_while_the_capture_is_outstanding() -> None:
    given(AUTHORIZING, AUTHORIZED, CAPTURING).when(CANCEL).then(CANCELLED)
    given(AUTHORIZING, AUTHORIZED, CAPTURING, CANCELLED).when(yes("capture")).then(CAPTURED, REFUNDING)
    given(AUTHORIZING, AUTHORIZED, CAPTURING, CANCELLED).when(no("capture", "too late")).then(CAPTURE_DECLINED, VOIDING)


UNDONE: list[list[Event]] = [
    [CANCELLED],
    [HELD, CANCELLED],
    [declined("risk")],
    [AUTHORIZING, CANCELLED],
    [AUTHORIZING, declined("provider")],
    [AUTHORIZING, AUTHORIZED, CAPTURING, CANCELLED],
    [AUTHORIZING, AUTHORIZED, VOIDING],
    [AUTHORIZING, AUTHORIZED, VOIDING, VOIDED],
    [AUTHORIZING, AUTHORIZED, CAPTURING, CAPTURE_DECLINED, VOIDING],
    [AUTHORIZING, AUTHORIZED, CAPTURING, CAPTURED, REFUNDING],
    [AUTHORIZING, AUTHORIZED, CAPTURING, CAPTURED, REFUNDING, REFUNDED],
]


@pytest.mark.parametrize("history", UNDONE)
def test_a_repeated_cancel_gives_the_money_back_once(history: list[Event]) -> None:
    given(*history).when(CANCEL).nothing()


@pytest.mark.parametrize(
    "history",
    [
        [HELD, CANCELLED],
        [AUTHORIZING, AUTHORIZED, VOIDING],
        [AUTHORIZING, AUTHORIZED, VOIDING, VOIDED],
        [AUTHORIZING, AUTHORIZED, CAPTURING, CAPTURED, REFUNDING],
        [AUTHORIZING, AUTHORIZED, CAPTURING, CAPTURED, REFUNDING, REFUNDED],
    ],
)
def test_a_confirmation_that_comes_after_the_cancel_takes_nothing(history: list[Event]) -> None:
    given(*history).when(CAPTURE).nothing()


def test_support_refunds_what_was_captured() -> None:
    given(AUTHORIZING, AUTHORIZED, CAPTURING, CAPTURED).when(REFUND).then(REFUNDING)
    given(AUTHORIZING, AUTHORIZED, CAPTURING, CAPTURED, REFUNDING).when(REFUND).nothing()
    given(AUTHORIZING, AUTHORIZED, CAPTURING, CAPTURED, REFUNDING, REFUNDED).when(REFUND).nothing()


@pytest.mark.parametrize(
    "history",
    [[HELD], [AUTHORIZING], [AUTHORIZING, AUTHORIZED], [AUTHORIZING, AUTHORIZED, CAPTURING], [declined("risk")]],
)
def test_a_payment_that_was_not_captured_cannot_be_refunded(history: list[Event]) -> None:
    given(*history).when(REFUND).refused("payment-not-captured")
