"""The audit finds every kind of error: each test plants one."""

from dataclasses import replace

import pytest

from infra.simulation.audit.books import Movement, Order, Violation, moved, takings
from infra.simulation.audit.ledger import Answered, Asked, CheckedOut
from services.common.money import Money
from tests.unit.infra.simulation.audit.run import (
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


def described(violations: list[Violation]) -> list[str]:
    return [str(violation) for violation in violations]


def test_books_that_balance_have_no_violation() -> None:
    assert checked() == []


# A checkout is one order


def test_the_audit_finds_an_accepted_checkout_that_got_lost() -> None:
    assert described(checked([*ENTRIES, LOST])) == [
        "a checkout is one order: order order-5 was accepted, and exists 0 times"
    ]


def test_the_audit_finds_an_order_that_exists_twice() -> None:
    twice = order_of(LOST, "cancelled", "payment_declined")
    assert described(checked([*ENTRIES, Asked("cart-5"), LOST], [*ORDERS, twice, twice])) == [
        "a checkout is one order: order order-5 was accepted, and exists 2 times"
    ]


def test_the_audit_finds_two_carts_that_became_the_same_order() -> None:
    assert described(checked([*ENTRIES, replace(HELD, cart_id="cart-5")])) == [
        "a checkout is one order: order order-4 is the order of cart cart-4 as well",
        "a checkout is one order: order order-4 is of cart cart-4 of bob",
    ]


def test_the_audit_finds_an_order_that_nobody_requested() -> None:
    unasked = order_of(LOST, "cancelled", "payment_declined")
    assert described(checked(orders=[*ORDERS, unasked])) == [
        "a checkout is one order: order order-5 was never requested"
    ]
    assert checked([*ENTRIES, Asked("cart-5")], [*ORDERS, unasked]) == []


@pytest.mark.parametrize(
    ("order", "what"),
    [
        (order_of(HELD, "in_review", customer_id="eve"), "is of cart cart-4 of eve"),
        (order_of(HELD, "in_review", total=Money(3001, "EUR")), "has the total 30.01 EUR, the cart had 30.00 EUR"),
        (order_of(HELD, "in_review", total=Money(3000, "USD")), "has the total 30.00 USD, the cart had 30.00 EUR"),
    ],
)
def test_the_audit_finds_an_order_that_differs_from_its_checkout(order: Order, what: str) -> None:
    assert described(checked(orders=[*ORDERS[:3], order])) == [f"a checkout is one order: order order-4 {what}"]


def test_the_audit_finds_an_order_of_another_cart() -> None:
    other = order_of(HELD, "in_review", cart_id="cart-9")
    assert described(checked(orders=[*ORDERS[:3], other])) == [
        "a checkout is one order: order order-4 is of cart cart-9 of bob",
        "a checkout is one order: order order-4 was never requested",
    ]


def test_the_audit_finds_an_order_for_other_pieces_than_the_cart_had() -> None:
    other = order_of(HELD, "in_review", lines={"MUG": 2})
    assert described(checked(orders=[*ORDERS[:3], other], shelves=SHELVES | {"MUG": 6})) == [
        "a checkout is one order: order order-4 is for {'MUG': 2}, the cart had {'MUG': 3}"
    ]


# The outcome of an order


@pytest.mark.parametrize("status", ["placed", "reserved"])
def test_the_audit_finds_an_order_that_is_never_decided(status: str) -> None:
    pending = order_of(HELD, status)
    assert described(checked(orders=[*ORDERS[:3], pending])) == [
        f"every order is decided: order order-4 is still {status}"
    ]


def test_the_audit_finds_a_cancelled_order_that_goes_on() -> None:
    entries = [*ENTRIES, replace(CANCELLED, order_id="order-1")]
    assert described(checked(entries)) == ["cancelled stays cancelled: order order-1 is confirmed"]


@pytest.mark.parametrize(
    ("status", "problem"), [(500, "internal"), (503, "unavailable"), (504, "position-not-reached")]
)
def test_the_audit_finds_a_server_error(status: int, problem: str) -> None:
    failed = Answered("shopper 1", "POST /v1/carts", "/v1/carts", status, 9.0, problem)
    assert described(checked([*ENTRIES, failed, failed])) == [
        f"no 5xx: POST /v1/carts was answered {status} {problem}, 2 times"
    ]


def test_a_refused_request_is_no_violation() -> None:
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
            "payment payment-9 kept 0.01 EUR, and has no order",
        ),
        (
            [*MOVEMENTS, Movement("payment-3", "refunded", Money(1000, "EUR"))],
            "order order-3 is cancelled: due nothing, kept -10.00 EUR",
        ),
    ],
)
def test_the_audit_finds_money_that_is_not_where_it_belongs(movements: list[Movement], what: str) -> None:
    assert described(checked(movements=movements)) == [f"money: {what}"]


def test_the_audit_finds_errors_that_cancel_each_other_out() -> None:
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
def test_the_audit_finds_pieces_that_are_missing_or_were_sold_twice(shelves: dict[str, int], what: str) -> None:
    assert described(checked(shelves=shelves)) == [f"stock: {what}"]


def test_the_audit_finds_more_pieces_sold_than_there_were() -> None:
    greedy = replace(HELD, lines={"MUG": 9})
    assert described(
        checked(
            [*(it for it in ENTRIES if it != HELD), greedy],
            [*ORDERS[:3], order_of(greedy, "in_review")],
            shelves=SHELVES | {"MUG": 0},
        )
    ) == ["stock: MUG had 10 pieces, 11 are sold or held, 0 are left"]
