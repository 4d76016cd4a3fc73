"""Folding a payment's history."""

import pytest

from services.payment.decider import Captured, evolve
from services.payment.events import Event
from tests.unit.payment.till import (
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
def test_a_history_that_cannot_be_is_not_folded(history: list[Event], event: Event) -> None:
    with pytest.raises(ValueError, match="cannot follow"):
        evolve(given(*history).state, event)


def test_a_payment_remembers_what_it_is_for() -> None:
    assert given(AUTHORIZING, AUTHORIZED, CAPTURING, CAPTURED).state == Captured(CHARGE)
