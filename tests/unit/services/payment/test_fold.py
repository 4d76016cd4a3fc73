"""Folding the events of a payment."""

import pytest

from services.payment.decider import Captured, evolve
from services.payment.events import Event
from tests.unit.services.payment.words import (
    AUTHORIZED,
    AUTHORIZING,
    CANCELLED,
    CAPTURED,
    CAPTURING,
    CHARGE,
    HELD,
    REFUNDED,
    VOIDED,
    declined,
    given,
)


@pytest.mark.parametrize(
    ("history", "event"),
    [
        ([], AUTHORIZED),
        ([], CAPTURED),
        ([AUTHORIZING], AUTHORIZING),
        ([AUTHORIZING], CAPTURING),
        ([AUTHORIZING, AUTHORIZED], CAPTURED),
        ([AUTHORIZING, AUTHORIZED], VOIDED),
        ([AUTHORIZING, declined("provider")], AUTHORIZED),
        ([AUTHORIZING, AUTHORIZED, CAPTURING, CAPTURED], REFUNDED),
        ([AUTHORIZING, AUTHORIZED, CAPTURING, CAPTURED], CAPTURED),
        ([HELD, CANCELLED], AUTHORIZING),
    ],
)
def test_an_impossible_history_is_not_folded(history: list[Event], event: Event) -> None:
    with pytest.raises(ValueError, match="cannot follow"):
        evolve(given(*history).state, event)


def test_a_payment_keeps_its_charge_in_every_state() -> None:
    assert given(AUTHORIZING, AUTHORIZED, CAPTURING, CAPTURED).state == Captured(CHARGE)
