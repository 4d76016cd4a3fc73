"""The outcome of its payment confirms or cancels an order."""

import pytest

from services.order.commands import (
    RecordPaymentAuthorized,
    RecordPaymentDeclined,
    RecordPaymentHeld,
    RecordPaymentRefunded,
)
from tests.unit.services.order.words import CONFIRMED, HELD, LATER, RESERVED, cancelled, given


def test_an_authorised_payment_confirms_the_order() -> None:
    given(*RESERVED).when(RecordPaymentAuthorized()).then(CONFIRMED)


def test_a_held_payment_puts_the_order_into_review() -> None:
    given(*RESERVED).when(RecordPaymentHeld(LATER)).then(HELD)


def test_a_reviewed_payment_confirms_the_order() -> None:
    given(*RESERVED, HELD).when(RecordPaymentAuthorized()).then(CONFIRMED)


@pytest.mark.parametrize(
    ("declined_by", "reason"), [("provider", "payment_declined"), ("risk", "fraud"), ("review", "fraud")]
)
def test_a_declined_payment_cancels_the_order(declined_by: str, reason: str) -> None:
    given(*RESERVED).when(RecordPaymentDeclined(declined_by)).then(cancelled(reason))
    given(*RESERVED, HELD).when(RecordPaymentDeclined(declined_by)).then(cancelled(reason))


def test_an_order_whose_money_could_not_be_taken_is_cancelled_though_it_was_confirmed() -> None:
    given(*RESERVED, CONFIRMED).when(RecordPaymentDeclined("provider")).then(cancelled("payment_declined"))


def test_an_order_whose_money_was_given_back_is_cancelled() -> None:
    given(*RESERVED, CONFIRMED).when(RecordPaymentRefunded()).then(cancelled("customer"))


def test_a_repeated_message_makes_no_difference_to_an_order() -> None:
    given(*RESERVED, HELD).when(RecordPaymentHeld(LATER + 1)).nothing()
    given(*RESERVED, CONFIRMED).when(RecordPaymentAuthorized()).nothing()


def test_a_hold_that_arrives_after_the_authorisation_is_ignored() -> None:
    given(*RESERVED, CONFIRMED).when(RecordPaymentHeld(LATER)).nothing()
