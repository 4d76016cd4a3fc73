"""A checker that has never failed proves nothing: each error here is planted, and has to be found."""

from dataclasses import replace

import pytest

from infra.shoppers.books import Movement, Order, Violation, moved, takings
from infra.shoppers.ledger import Answered, Asked, CheckedOut
from shared.money import Money
from tests.unit.shoppers.run import (
    CANCELLED,
    ENTRIES,
    HELD,
    MOVEMENTS,
    ORDERS,
    SHELVES,
    checked,
    order_of,
)

LOST = CheckedOut("order-5", "cart-5", "bob", "tok_ok", {"MUG": 1}, 1000, "EUR")


def told(violations: list[Violation]) -> list[str]:
    return [str(violation) for violation in violations]


def test_books_that_balance_are_let_through() -> None:
    assert checked() == []


# A checkout is one order


def test_an_accepted_checkout_that_got_lost() -> None:
    assert told(checked([*ENTRIES, LOST])) == [
        "a checkout is one order: order order-5 was accepted, and is there 0 times"
    ]


def test_an_order_that_is_there_twice() -> None:
    twice = order_of(LOST, "cancelled", "payment_declined")
    assert told(checked([*ENTRIES, Asked("cart-5"), LOST], [*ORDERS, twice, twice])) == [
        "a checkout is one order: order order-5 was accepted, and is there 2 times"
    ]


def test_two_carts_that_became_the_same_order() -> None:
    assert told(checked([*ENTRIES, replace(HELD, cart_id="cart-5")])) == [
        "a checkout is one order: order order-4 is the order of cart cart-4 as well",
        "a checkout is one order: order order-4 is of cart cart-4 of bob",
    ]


def test_an_order_that_nobody_asked_for() -> None:
    unasked = order_of(LOST, "cancelled", "payment_declined")
    assert told(checked(orders=[*ORDERS, unasked])) == ["a checkout is one order: order order-5 was never asked for"]
    assert checked([*ENTRIES, Asked("cart-5")], [*ORDERS, unasked]) == []


@pytest.mark.parametrize(
    ("order", "what"),
    [
        (order_of(HELD, "in_review", customer_id="eve"), "is of cart cart-4 of eve"),
        (order_of(HELD, "in_review", total=Money(3001, "EUR")), "comes to 30.01 EUR, the cart to 30.00 EUR"),
        (order_of(HELD, "in_review", total=Money(3000, "USD")), "comes to 30.00 USD, the cart to 30.00 EUR"),
    ],
)
def test_an_order_that_is_not_what_was_checked_out(order: Order, what: str) -> None:
    assert told(checked(orders=[*ORDERS[:3], order])) == [f"a checkout is one order: order order-4 {what}"]


def test_an_order_of_another_cart() -> None:
    other = order_of(HELD, "in_review", cart_id="cart-9")
    assert told(checked(orders=[*ORDERS[:3], other])) == [
        "a checkout is one order: order order-4 is of cart cart-9 of bob",
        "a checkout is one order: order order-4 was never asked for",
    ]


def test_an_order_for_other_pieces_than_the_cart_had() -> None:
    other = order_of(HELD, "in_review", lines={"MUG": 2})
    assert told(checked(orders=[*ORDERS[:3], other], shelves=SHELVES | {"MUG": 6})) == [
        "a checkout is one order: order order-4 is for {'MUG': 2}, the cart had {'MUG': 3}"
    ]


# What becomes of it


@pytest.mark.parametrize("status", ["placed", "reserved"])
def test_an_order_that_is_never_decided(status: str) -> None:
    pending = order_of(HELD, status)
    assert told(checked(orders=[*ORDERS[:3], pending])) == [f"every order is decided: order order-4 is still {status}"]


def test_an_order_that_was_cancelled_and_goes_on() -> None:
    entries = [*ENTRIES, replace(CANCELLED, order_id="order-1")]
    assert told(checked(entries)) == ["cancelled stays cancelled: order order-1 is confirmed"]


@pytest.mark.parametrize(
    ("status", "problem"), [(500, "internal"), (503, "unavailable"), (504, "position-not-reached")]
)
def test_a_server_error(status: int, problem: str) -> None:
    failed = Answered("shopper 1", "POST /v1/carts", "/v1/carts", status, 9.0, problem)
    assert told(checked([*ENTRIES, failed, failed])) == [
        f"no 5xx: POST /v1/carts was answered {status} {problem}, 2 times"
    ]


def test_a_refusal_is_no_error() -> None:
    refused = Answered("shopper 1", "POST /v1/carts", "/v1/carts", 409, 9.0, "cart-full")
    assert checked([*ENTRIES, refused]) == []


# Money


@pytest.mark.parametrize(
    ("movements", "what"),
    [
        (MOVEMENTS[2:], "order order-1 is confirmed: due 60.00 EUR, kept nothing"),
        ([MOVEMENTS[1], *MOVEMENTS], "order order-1 is confirmed: due 60.00 EUR, kept 120.00 EUR"),
        (
            [Movement("payment-1", "captured", Money(5999, "EUR")), *MOVEMENTS[2:]],
            "order order-1 is confirmed: due 60.00 EUR, kept 59.99 EUR",
        ),
        (
            [Movement("payment-1", "captured", Money(6000, "USD")), *MOVEMENTS[2:]],
            "order order-1 is confirmed: due 60.00 EUR, kept 60.00 USD",
        ),
        (MOVEMENTS[:4], "order order-3 is cancelled: due nothing, kept 10.00 EUR"),
        (
            [*MOVEMENTS, Movement("payment-4", "captured", Money(3000, "EUR"))],
            "order order-4 is in_review: due nothing, kept 30.00 EUR",
        ),
        (
            [*MOVEMENTS, Movement("payment-9", "captured", Money(1, "EUR"))],
            "payment payment-9 kept 0.01 EUR, and is of no order",
        ),
        (
            [*MOVEMENTS, Movement("payment-3", "refunded", Money(1000, "EUR"))],
            "order order-3 is cancelled: due nothing, kept -10.00 EUR",
        ),
    ],
)
def test_money_that_is_not_where_it_belongs(movements: list[Movement], what: str) -> None:
    assert told(checked(movements=movements)) == [f"money: {what}"]


def test_errors_that_cancel_each_other_out_are_found_all_the_same() -> None:
    swapped = [replace(it, payment_id={"payment-1": "payment-4"}.get(it.payment_id, it.payment_id)) for it in MOVEMENTS]
    assert takings(ORDERS) == {"EUR": 6000}
    assert moved(swapped, "captured")["EUR"] - moved(swapped, "refunded")["EUR"] == 6000
    assert [it.about for it in checked(movements=swapped)] == ["order order-1", "order order-4"]


# Stock


@pytest.mark.parametrize(
    ("shelves", "what"),
    [
        (SHELVES | {"MUG": 4}, "MUG had 10 pieces, 5 are sold or held, 4 are left"),
        (SHELVES | {"MUG": 6}, "MUG had 10 pieces, 5 are sold or held, 6 are left"),
        ({"MUG": 5}, "POT had 5 pieces, 1 are sold or held, 0 are left"),
    ],
)
def test_pieces_that_leaked_or_were_sold_twice(shelves: dict[str, int], what: str) -> None:
    assert told(checked(shelves=shelves)) == [f"stock: {what}"]


def test_more_sold_than_there_were() -> None:
    greedy = replace(HELD, lines={"MUG": 9})
    assert told(
        checked(
            [*(it for it in ENTRIES if it != HELD), greedy],
            [*ORDERS[:3], order_of(greedy, "in_review")],
            shelves=SHELVES | {"MUG": 0},
        )
    ) == ["stock: MUG had 10 pieces, 11 are sold or held, 0 are left"]
