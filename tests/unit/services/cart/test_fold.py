"""Folding the events of a cart."""

import pytest

from services.cart.decider import Open, evolve, initial, total
from services.cart.events import ItemRemoved, Line
from tests.unit.services.cart.words import (
    ANN,
    CHECKED_OUT,
    LATER,
    MUG,
    MUG_ADDED,
    NOON,
    OPENED,
    POT_ADDED,
    euro,
    given,
)


def test_an_impossible_history_is_not_folded() -> None:
    with pytest.raises(ValueError, match="ItemAdded cannot follow"):
        evolve(initial, MUG_ADDED)


def test_folding_leaves_the_earlier_state_as_it_was() -> None:
    before = given(OPENED, MUG_ADDED).state
    evolve(before, POT_ADDED)
    evolve(before, ItemRemoved(MUG, LATER, 2))
    assert before == Open(ANN, {MUG: Line(MUG, "Enamel Mug", 2, euro(1190))}, NOON)


def test_a_total_is_the_sum_of_all_pieces() -> None:
    assert total(CHECKED_OUT.lines) == euro(2 * 1190 + 3990)
