"""A cart is opened once and belongs to its customer until it is closed."""

import pytest

from services.cart.commands import Command, OpenCart
from services.cart.events import CartOpened
from tests.unit.services.cart.words import (
    A_MUG,
    ABANDONED,
    ANN,
    ANYTHING_A_SHOPPER_ASKS,
    BOB,
    CHECKED_OUT,
    LATER,
    MUG,
    MUG_ADDED,
    NOON,
    OPENED,
    POT_ADDED,
    add,
    given,
)


def test_a_shopper_opens_a_cart() -> None:
    given().when(OpenCart(ANN, NOON)).then(CartOpened(ANN, NOON))


def test_a_cart_is_opened_once() -> None:
    given(OPENED).when(OpenCart(ANN, LATER)).refused("cart-open")


def test_a_taken_cart_id_looks_unknown_to_a_stranger() -> None:
    given(OPENED).when(OpenCart(BOB, LATER)).refused("cart-unknown")


@pytest.mark.parametrize("command", ANYTHING_A_SHOPPER_ASKS)
def test_a_cart_nobody_opened_is_unknown(command: Command) -> None:
    given().when(command).refused("cart-unknown")


@pytest.mark.parametrize("command", ANYTHING_A_SHOPPER_ASKS)
def test_someone_elses_cart_is_unknown(command: Command) -> None:
    given(CartOpened(BOB, NOON), MUG_ADDED, POT_ADDED).when(command).refused("cart-unknown")


@pytest.mark.parametrize("command", ANYTHING_A_SHOPPER_ASKS)
def test_a_checked_out_cart_is_closed(command: Command) -> None:
    given(OPENED, MUG_ADDED, POT_ADDED, CHECKED_OUT).when(command).refused("cart-checked-out")


@pytest.mark.parametrize("command", ANYTHING_A_SHOPPER_ASKS)
def test_an_abandoned_cart_is_closed(command: Command) -> None:
    given(OPENED, MUG_ADDED, POT_ADDED, ABANDONED).when(command).refused("cart-abandoned")


def test_a_stranger_does_not_learn_that_a_closed_cart_exists() -> None:
    given(OPENED, MUG_ADDED, POT_ADDED, CHECKED_OUT).when(add(MUG, A_MUG, customer=BOB)).refused("cart-unknown")
