"""A small run whose books balance: one order confirmed, one declined, one cancelled after payment, one in review."""

from dataclasses import replace
from typing import Any

from infra.simulation.audit.books import Evidence, Movement, Order, Violation, violations
from infra.simulation.audit.ledger import Answered, Asked, CancelAccepted, CheckedOut, Entry, Ledger, Opening
from services.common.money import Money

ANN, BOB = "ann", "bob"

ANSWERED = Answered("shopper 1", "POST /v1/carts", "/v1/carts", 201, 2.5)
OPENING = Opening({"MUG": 10, "POT": 5}, last_movement=7)
CONFIRMED = CheckedOut("order-1", "cart-1", ANN, "tok_ok", {"MUG": 2, "POT": 1}, 6000, "EUR")
DECLINED = CheckedOut("order-2", "cart-2", BOB, "tok_declined", {"POT": 4}, 16000, "EUR")
REFUNDED = CheckedOut("order-3", "cart-3", ANN, "tok_ok", {"MUG": 1}, 1000, "EUR")
HELD = CheckedOut("order-4", "cart-4", BOB, "tok_ok", {"MUG": 3}, 3000, "EUR")
CANCELLED = CancelAccepted("order-3")

CHECKOUTS = [CONFIRMED, CONFIRMED, DECLINED, REFUNDED, HELD]
ASKED = [Asked(checkout.cart_id) for checkout in CHECKOUTS]
ENTRIES: list[Entry] = [OPENING, ANSWERED, *ASKED, *CHECKOUTS, CANCELLED]


def order_of(checkout: CheckedOut, status: str, reason: str = "", **other: Any) -> Order:
    total = Money(checkout.amount, checkout.currency)
    payment_id = checkout.order_id.replace("order", "payment")
    made = Order(
        checkout.order_id, checkout.cart_id, checkout.customer_id, status, reason, checkout.lines, total, payment_id
    )
    return replace(made, **other)


ORDERS = [
    order_of(CONFIRMED, "confirmed"),
    order_of(DECLINED, "cancelled", "payment_declined"),
    order_of(REFUNDED, "cancelled", "customer"),
    order_of(HELD, "in_review"),
]
MOVEMENTS = [
    Movement("payment-1", "authorized", Money(6000, "EUR")),
    Movement("payment-1", "captured", Money(6000, "EUR")),
    Movement("payment-2", "declined", Money(16000, "EUR")),
    Movement("payment-3", "captured", Money(1000, "EUR")),
    Movement("payment-3", "refunded", Money(1000, "EUR")),
]
SHELVES = {"MUG": 5, "POT": 4}


def checked(
    entries: list[Entry] = ENTRIES,
    orders: list[Order] = ORDERS,
    movements: list[Movement] = MOVEMENTS,
    shelves: dict[str, int] = SHELVES,
) -> list[Violation]:
    ledger = Ledger()
    for entry in entries:
        ledger.note(entry)
    return violations(ledger, Evidence(orders, movements, shelves))
