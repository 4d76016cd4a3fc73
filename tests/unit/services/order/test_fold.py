"""Folding the events of an order."""

import pytest

from services.order.decider import Cancelled, Confirmed, evolve, initial
from services.order.events import Event
from tests.unit.services.order.words import CONFIRMED, HELD, MUG_RESERVED, PAYMENT, PLACED, RESERVED, cancelled, given


@pytest.mark.parametrize(
    ("history", "event"),
    [
        ([], MUG_RESERVED),
        ([PLACED], PLACED),
        ([PLACED], CONFIRMED),
        ([PLACED], HELD),
        ([*RESERVED, CONFIRMED], HELD),
        ([*RESERVED, cancelled("customer")], CONFIRMED),
        ([*RESERVED, cancelled("customer")], cancelled("customer")),
    ],
)
def test_an_impossible_history_is_not_folded(history: list[Event], event: Event) -> None:
    with pytest.raises(ValueError, match="cannot follow"):
        evolve(given(*history).state, event)


def test_a_final_order_still_shows_what_was_ordered() -> None:
    assert given(*RESERVED, CONFIRMED).state == Confirmed(PLACED, PAYMENT)
    assert given(*RESERVED, cancelled("timeout")).state == Cancelled(PLACED, PAYMENT, "timeout")


def test_folding_leaves_the_earlier_state_as_it_was() -> None:
    before = given(PLACED).state
    evolve(before, MUG_RESERVED)
    assert before == evolve(initial, PLACED)
