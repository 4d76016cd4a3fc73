"""The rules for adding products to a cart."""

import pytest

from services.cart.commands import Product
from services.cart.decider import Open
from services.cart.events import Event, ItemAdded, ItemRemoved, Line, QuantitySet
from services.common.money import Money
from tests.unit.services.cart.words import (
    A_MUG,
    ANN,
    LATER,
    MUG,
    MUG_ADDED,
    NOON,
    OPENED,
    POT,
    POT_ADDED,
    WITHDRAWN_MUG,
    YEN_MUG,
    add,
    euro,
    given,
    set_quantity,
)


def full_cart() -> list[Event]:
    return [OPENED, *(ItemAdded(f"SKU-{n}", "Thing", 1, euro(100), NOON) for n in range(50))]


def test_an_item_is_added_with_the_shops_name_and_price() -> None:
    given(OPENED).when(add(MUG, A_MUG, 2)).then(ItemAdded(MUG, "Enamel Mug", 2, euro(1190), LATER))


def test_adding_a_product_again_adds_up_the_pieces() -> None:
    given(OPENED, MUG_ADDED).when(add(MUG, A_MUG, 3)).then(ItemAdded(MUG, "Enamel Mug", 3, euro(1190), LATER))
    cart = given(OPENED, MUG_ADDED, ItemAdded(MUG, "Enamel Mug", 3, euro(1190), LATER)).state
    assert cart == Open(ANN, {MUG: Line(MUG, "Enamel Mug", 5, euro(1190))}, LATER)


def test_adding_more_takes_todays_price_for_the_whole_line() -> None:
    cart = given(OPENED, MUG_ADDED, ItemAdded(MUG, "Enamel Mug", 1, euro(1290), LATER)).state
    assert cart == Open(ANN, {MUG: Line(MUG, "Enamel Mug", 3, euro(1290))}, LATER)


@pytest.mark.parametrize("quantity", [0, -1, 100, 10**30])
def test_fewer_than_1_or_more_than_99_pieces_cannot_be_added(quantity: int) -> None:
    given(OPENED).when(add(MUG, A_MUG, quantity)).refused("quantity-out-of-range", "1 to 99")


def test_99_pieces_can_be_added() -> None:
    given(OPENED).when(add(MUG, A_MUG, 99)).then(ItemAdded(MUG, "Enamel Mug", 99, euro(1190), LATER))


def test_pieces_already_in_the_cart_count_towards_the_limit() -> None:
    given(OPENED, MUG_ADDED).when(add(MUG, A_MUG, 98)).refused("quantity-out-of-range", "has 2 already")
    given(OPENED, MUG_ADDED).when(add(MUG, A_MUG, 97)).then(ItemAdded(MUG, "Enamel Mug", 97, euro(1190), LATER))


def test_adding_a_negative_quantity_does_not_take_pieces_out() -> None:
    given(OPENED, MUG_ADDED).when(add(MUG, A_MUG, -1)).refused("quantity-out-of-range")


def test_an_unknown_product_cannot_be_added() -> None:
    given(OPENED).when(add("NO-SUCH", None)).refused("product-unknown", "NO-SUCH")


def test_a_withdrawn_product_cannot_be_added() -> None:
    given(OPENED).when(add(MUG, WITHDRAWN_MUG)).refused("product-withdrawn", "Enamel Mug")


def test_a_cart_has_at_most_50_lines() -> None:
    given(*full_cart()).when(add(MUG, A_MUG)).refused("cart-full", "50")


def test_a_full_cart_takes_more_of_what_it_has() -> None:
    thing = Product("Thing", euro(100))
    given(*full_cart()).when(add("SKU-7", thing)).then(ItemAdded("SKU-7", "Thing", 1, euro(100), LATER))


def test_a_cart_has_one_currency() -> None:
    given(OPENED, POT_ADDED).when(add(MUG, YEN_MUG)).refused("currency-mixed", "JPY", "EUR")


def test_an_emptied_cart_may_change_its_currency() -> None:
    given(OPENED, POT_ADDED, ItemRemoved(POT, NOON, 1)).when(add(MUG, YEN_MUG)).then(
        ItemAdded(MUG, "Enamel Mug", 1, Money(1900, "JPY"), LATER)
    )


def test_the_only_line_may_follow_its_product_into_another_currency() -> None:
    given(OPENED, MUG_ADDED).when(set_quantity(MUG, YEN_MUG, 2)).then(QuantitySet(MUG, 2, Money(1900, "JPY"), LATER))
    given(OPENED, MUG_ADDED, POT_ADDED).when(set_quantity(MUG, YEN_MUG, 2)).refused("currency-mixed")
