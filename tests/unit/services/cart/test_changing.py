"""The rules for changing and removing lines."""

import pytest

from services.cart.decider import Open
from services.cart.events import ItemRemoved, QuantitySet
from tests.unit.services.cart.words import (
    A_MUG,
    A_POT,
    DEARER_MUG,
    LATER,
    MUG,
    MUG_ADDED,
    NOON,
    OPENED,
    POT,
    POT_ADDED,
    WITHDRAWN_MUG,
    euro,
    given,
    remove,
    set_quantity,
)


def test_a_quantity_is_set() -> None:
    given(OPENED, MUG_ADDED).when(set_quantity(MUG, A_MUG, 5)).then(QuantitySet(MUG, 5, euro(1190), LATER))


def test_setting_the_same_quantity_at_the_same_price_changes_nothing() -> None:
    given(OPENED, MUG_ADDED).when(set_quantity(MUG, A_MUG, 2)).nothing()


def test_setting_the_same_quantity_takes_a_new_price() -> None:
    given(OPENED, MUG_ADDED).when(set_quantity(MUG, DEARER_MUG, 2)).then(QuantitySet(MUG, 2, euro(1290), LATER))


def test_99_pieces_may_be_set() -> None:
    given(OPENED, MUG_ADDED).when(set_quantity(MUG, A_MUG, 99)).then(QuantitySet(MUG, 99, euro(1190), LATER))


@pytest.mark.parametrize("quantity", [0, -5, 100])
def test_fewer_than_1_or_more_than_99_pieces_cannot_be_set(quantity: int) -> None:
    given(OPENED, MUG_ADDED).when(set_quantity(MUG, A_MUG, quantity)).refused("quantity-out-of-range")


def test_the_quantity_of_a_line_that_is_not_there_cannot_be_set() -> None:
    given(OPENED, MUG_ADDED).when(set_quantity(POT, A_POT, 1)).refused("line-unknown", POT)


def test_the_quantity_of_a_withdrawn_product_cannot_be_set() -> None:
    given(OPENED, MUG_ADDED).when(set_quantity(MUG, WITHDRAWN_MUG, 1)).refused("product-withdrawn")


def test_the_quantity_of_a_product_the_shop_no_longer_knows_cannot_be_set() -> None:
    given(OPENED, MUG_ADDED).when(set_quantity(MUG, None, 1)).refused("product-unknown")


def test_a_line_is_removed_with_all_its_pieces() -> None:
    given(OPENED, MUG_ADDED).when(remove(MUG)).then(ItemRemoved(MUG, LATER, 2))


def test_a_line_that_is_not_there_cannot_be_removed() -> None:
    given(OPENED, MUG_ADDED, ItemRemoved(MUG, NOON, 2)).when(remove(MUG)).refused("line-unknown", MUG)


def test_lines_stay_in_the_order_in_which_they_were_added() -> None:
    cart = given(OPENED, MUG_ADDED, POT_ADDED, QuantitySet(MUG, 7, euro(1190), LATER)).state
    assert isinstance(cart, Open)
    assert list(cart.lines) == [MUG, POT]
