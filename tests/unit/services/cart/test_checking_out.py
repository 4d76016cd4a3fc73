"""The rules for checking out, and at which price."""

from dataclasses import replace

from services.cart.decider import CheckedOut
from services.cart.events import ItemRemoved, Line, QuantitySet
from tests.unit.services.cart.words import (
    A_MUG,
    A_POT,
    CHECKED_OUT,
    DEARER_MUG,
    LATER,
    MUG,
    MUG_ADDED,
    NOON,
    OPENED,
    ORDER,
    POT,
    POT_ADDED,
    WITHDRAWN_MUG,
    check_out,
    euro,
    given,
)


def test_a_cart_is_checked_out_with_its_lines_and_their_sum() -> None:
    given(OPENED, MUG_ADDED, POT_ADDED).when(check_out({MUG: A_MUG, POT: A_POT})).then(CHECKED_OUT)


def test_an_empty_cart_cannot_be_checked_out() -> None:
    given(OPENED).when(check_out({})).refused("cart-empty")
    given(OPENED, MUG_ADDED, ItemRemoved(MUG, NOON, 2)).when(check_out({})).refused("cart-empty")


def test_checkout_is_refused_if_a_price_has_changed() -> None:
    given(OPENED, MUG_ADDED, POT_ADDED).when(check_out({MUG: DEARER_MUG, POT: A_POT})).refused(
        "price-changed", "Enamel Mug (MUG-350) costs 12.90 EUR, no longer 11.90 EUR."
    )


def test_the_refusal_names_every_changed_price() -> None:
    cheaper_pot = replace(A_POT, price=euro(2990))
    given(OPENED, MUG_ADDED, POT_ADDED).when(check_out({MUG: DEARER_MUG, POT: cheaper_pot})).refused(
        "price-changed", "12.90 EUR", "29.90 EUR"
    )


def test_a_price_accepted_by_setting_the_quantity_can_be_paid() -> None:
    taken = QuantitySet(MUG, 2, euro(1290), LATER)
    [event] = given(OPENED, MUG_ADDED, taken).when(check_out({MUG: DEARER_MUG})).decide()
    assert event == replace(CHECKED_OUT, lines=(Line(MUG, "Enamel Mug", 2, euro(1290)),), total=euro(2580))


def test_a_product_withdrawn_in_the_meantime_cannot_be_bought() -> None:
    given(OPENED, MUG_ADDED).when(check_out({MUG: WITHDRAWN_MUG})).refused("product-withdrawn")


def test_a_product_the_shop_no_longer_knows_cannot_be_bought() -> None:
    given(OPENED, MUG_ADDED).when(check_out({})).refused("product-unknown", MUG)


def test_a_checked_out_cart_still_shows_what_was_bought() -> None:
    cart = given(OPENED, MUG_ADDED, POT_ADDED, CHECKED_OUT).state
    assert isinstance(cart, CheckedOut)
    assert (tuple(cart.lines.values()), cart.order_id) == (CHECKED_OUT.lines, ORDER)
