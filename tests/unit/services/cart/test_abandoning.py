"""A cart that is idle for too long is abandoned."""

import pytest

from services.cart.commands import AbandonCart
from services.cart.decider import Abandoned, abandon_due, initial
from services.cart.events import CartAbandoned, Event, ItemAdded, ItemRemoved, Line
from tests.unit.services.cart.words import (
    ABANDONED,
    ANN,
    CHECKED_OUT,
    HOUR,
    LATER,
    MUG,
    MUG_ADDED,
    NOON,
    OPENED,
    POT,
    POT_ADDED,
    euro,
    given,
)


def test_a_cart_idle_for_long_enough_is_abandoned_with_what_is_in_it() -> None:
    left = (Line(MUG, "Enamel Mug", 2, euro(1190)), Line(POT, "Iron Teapot", 1, euro(3990)))
    given(OPENED, MUG_ADDED, POT_ADDED).when(AbandonCart(HOUR, NOON + HOUR)).then(CartAbandoned(NOON, left))


def test_a_cart_changed_in_the_meantime_is_not_abandoned() -> None:
    touched = ItemRemoved(MUG, LATER, 2)
    given(OPENED, MUG_ADDED, touched).when(AbandonCart(HOUR, NOON + HOUR)).nothing()
    given(OPENED, MUG_ADDED, touched).when(AbandonCart(HOUR, LATER + HOUR)).then(CartAbandoned(LATER, ()))


@pytest.mark.parametrize("history", [[], [OPENED, MUG_ADDED, ABANDONED], [OPENED, MUG_ADDED, CHECKED_OUT]])
def test_a_deadline_does_nothing_to_a_cart_that_is_not_open(history: list[Event]) -> None:
    given(*history).when(AbandonCart(HOUR, NOON + 2 * HOUR)).nothing()


def test_the_deadline_is_known_while_the_cart_is_open() -> None:
    assert abandon_due(given(OPENED).state, HOUR) == NOON + HOUR
    assert abandon_due(given(OPENED, ItemRemoved(MUG, LATER, 2)).state, HOUR) == LATER + HOUR
    assert abandon_due(given(OPENED, MUG_ADDED, ABANDONED).state, HOUR) is None
    assert abandon_due(initial, HOUR) is None


def test_a_server_whose_clock_is_behind_does_not_make_a_cart_older() -> None:
    behind = ItemAdded(MUG, "Enamel Mug", 1, euro(1190), NOON - HOUR)
    assert abandon_due(given(OPENED, behind).state, HOUR) == NOON + HOUR


def test_an_abandoned_cart_still_shows_what_was_in_it() -> None:
    assert given(OPENED, MUG_ADDED, ABANDONED).state == Abandoned(ANN, {MUG: Line(MUG, "Enamel Mug", 2, euro(1190))})
