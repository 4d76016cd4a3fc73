"""Pieces are reserved, then sold or released, each once, in whatever order the messages arrive."""

import pytest

from services.catalog.events import Event, ProductListed, ProductRelisted, StockCounted
from services.catalog.reservations import REMEMBERED
from tests.unit.services.catalog.words import (
    FIRST,
    LISTED,
    MUG,
    PRICE,
    SECOND,
    WITHDRAWN,
    commit,
    given,
    rejected,
    release,
    released,
    reserve,
    reserved,
    returned,
    sold,
)


def test_pieces_are_reserved_for_an_order() -> None:
    given(LISTED).when(reserve(FIRST, 3)).then(reserved(FIRST, 3))


def test_the_last_piece_can_be_reserved() -> None:
    given(LISTED, reserved(FIRST, 9)).when(reserve(SECOND, 1)).then(reserved(SECOND, 1))


def test_no_piece_is_promised_twice() -> None:
    given(LISTED, reserved(FIRST, 8)).when(reserve(SECOND, 3)).then(rejected(SECOND, 3, available=2))
    given(LISTED, reserved(FIRST, 8), sold(FIRST, 8)).when(reserve(SECOND, 3)).then(rejected(SECOND, 3, available=2))


def test_released_pieces_can_be_reserved_again() -> None:
    given(LISTED, reserved(FIRST, 8), released(FIRST, 8)).when(reserve(SECOND, 10)).then(reserved(SECOND, 10))


def test_delivered_pieces_can_be_reserved() -> None:
    given(LISTED, StockCounted(MUG, 5, 15)).when(reserve(FIRST, 15)).then(reserved(FIRST, 15))


def test_a_withdrawn_product_is_not_reserved_any_more() -> None:
    given(LISTED, WITHDRAWN).when(reserve(FIRST, 1)).then(rejected(FIRST, 1, available=0))
    given(LISTED, WITHDRAWN, ProductRelisted(MUG)).when(reserve(FIRST, 1)).then(reserved(FIRST, 1))


def test_held_pieces_can_be_sold_or_released_after_a_withdrawal() -> None:
    given(LISTED, reserved(FIRST, 3), WITHDRAWN).when(commit(FIRST)).then(sold(FIRST, 3))
    given(LISTED, reserved(FIRST, 3), WITHDRAWN).when(release(FIRST)).then(released(FIRST, 3))


def test_an_order_for_a_product_that_was_never_listed_is_answered_too() -> None:
    given().when(reserve(FIRST, 1)).then(rejected(FIRST, 1, available=0))


@pytest.mark.parametrize("quantity", [0, -3])
def test_at_least_one_piece_is_reserved(quantity: int) -> None:
    given(LISTED).when(reserve(FIRST, quantity)).refused("quantity-out-of-range")


def test_a_confirmed_order_buys_what_it_holds() -> None:
    given(LISTED, reserved(FIRST, 3)).when(commit(FIRST)).then(sold(FIRST, 3))


def test_a_cancelled_order_gives_back_what_it_holds() -> None:
    given(LISTED, reserved(FIRST, 3)).when(release(FIRST)).then(released(FIRST, 3))


@pytest.mark.parametrize(
    "history",
    [
        [LISTED, reserved(FIRST, 3)],
        [LISTED, reserved(FIRST, 3), sold(FIRST, 3)],
        [LISTED, reserved(FIRST, 3), released(FIRST, 3)],
        [LISTED, reserved(FIRST, 3), sold(FIRST, 3), returned(FIRST, 3)],
        [LISTED, rejected(FIRST, 30, 10)],
        [LISTED, rejected(FIRST, 30, 10), StockCounted(MUG, 50, 60)],
        [rejected(FIRST, 3, 0), LISTED],
    ],
)
def test_an_order_is_answered_once_however_often_it_asks(history: list[Event]) -> None:
    given(*history).when(reserve(FIRST, 3)).nothing()


def test_selling_twice_sells_once() -> None:
    given(LISTED, reserved(FIRST, 3), sold(FIRST, 3)).when(commit(FIRST)).nothing()


def test_releasing_twice_gives_back_once() -> None:
    given(LISTED, reserved(FIRST, 3), released(FIRST, 3)).when(release(FIRST)).nothing()


def test_sold_pieces_come_back_when_the_order_is_cancelled_after_all() -> None:
    bought = LISTED, reserved(FIRST, 3), sold(FIRST, 3)
    given(*bought).when(release(FIRST, had=3)).then(returned(FIRST, 3))
    given(*bought, returned(FIRST, 3)).when(reserve(SECOND, 11)).then(rejected(SECOND, 11, available=10))
    given(*bought, returned(FIRST, 3)).when(reserve(SECOND, 10)).then(reserved(SECOND, 10))


def test_returned_pieces_come_back_once_and_are_not_sold_again() -> None:
    back = LISTED, reserved(FIRST, 3), sold(FIRST, 3), returned(FIRST, 3)
    given(*back).when(release(FIRST, had=3)).nothing()
    given(*back).when(commit(FIRST)).nothing()
    given(*back).when(reserve(FIRST, 3)).nothing()


def test_a_cancel_that_overtakes_the_sale_gives_back_what_is_held() -> None:
    given(LISTED, reserved(FIRST, 3)).when(release(FIRST, had=3)).then(released(FIRST, 3))
    given(LISTED, reserved(FIRST, 3), released(FIRST, 3)).when(commit(FIRST)).nothing()


def test_pieces_sold_too_long_ago_to_be_remembered_come_back_too() -> None:
    since = [event for n in range(2 * REMEMBERED) for event in (reserved(f"{n}", 1), sold(f"{n}", 1))]
    bought = ProductListed(MUG, "Enamel Mug", PRICE, 10_000), reserved(FIRST, 3), sold(FIRST, 3), *since
    given(*bought).when(commit(FIRST)).refused("reservation-unknown")
    given(*bought).when(release(FIRST, had=3)).then(returned(FIRST, 3))
    given(*bought, returned(FIRST, 3)).when(release(FIRST, had=3)).nothing()


def test_released_pieces_are_not_sold() -> None:
    given(LISTED, reserved(FIRST, 3), released(FIRST, 3)).when(commit(FIRST)).nothing()


def test_a_rejected_order_has_nothing_to_release() -> None:
    given(LISTED, rejected(FIRST, 30, 10)).when(release(FIRST)).nothing()


def test_a_release_that_overtakes_its_reservation_is_remembered() -> None:
    given(LISTED).when(release(FIRST)).then(released(FIRST, 0))


def test_an_overtaken_reservation_holds_nothing() -> None:
    given(LISTED, released(FIRST, 0)).when(reserve(FIRST, 3)).nothing()
    given(released(FIRST, 0), LISTED).when(reserve(FIRST, 3)).nothing()


def test_a_sale_without_a_reservation_is_refused_and_can_be_tried_again() -> None:
    given(LISTED).when(commit(FIRST)).refused("reservation-unknown", FIRST)
    given(LISTED, reserved(FIRST, 3)).when(commit(FIRST)).then(sold(FIRST, 3))
