"""The vocabulary of the order's tests: one order of a mug and a pot, and short names for commands and events."""

from services.common.money import Money
from services.order import decider
from services.order.commands import CancelOrder, ExpireOrder, PlaceOrder
from services.order.events import (
    Line,
    LineReserved,
    OrderCancelled,
    OrderConfirmed,
    OrderHeld,
    OrderPlaced,
    PaymentRequested,
)
from tests.unit.services.given import Scenario

given = Scenario(decider).given

ANN = "0190a5c0-0000-7000-8000-0000000000aa"
BOB = "0190a5c0-0000-7000-8000-0000000000bb"
CART = "0190a5c0-0000-7000-8000-000000000001"
ORDER = "6f2c0f4e-0000-5000-8000-000000000001"
PAYMENT = decider.payment_of(ORDER)

NOON = 1_767_268_800_000
LATER = NOON + 30_000
MINUTE, HOUR = 60_000, 3_600_000

MUG, POT = "MUG-350", "POT-800"
LINES = (Line(MUG, "Enamel Mug", 2, Money(1190, "EUR")), Line(POT, "Iron Teapot", 1, Money(3990, "EUR")))
TOTAL = Money(6370, "EUR")

PLACE = PlaceOrder(ORDER, CART, ANN, LINES, TOTAL, "tok_ok", "standard", "sealed", NOON)
BY_ANN, BY_BOB, BY_SUPPORT = CancelOrder("customer", ANN), CancelOrder("customer", BOB), CancelOrder("support")

PLACED = OrderPlaced(ORDER, CART, ANN, LINES, TOTAL, "tok_ok", "standard", "sealed", NOON)
MUG_RESERVED, POT_RESERVED = LineReserved(ORDER, MUG), LineReserved(ORDER, POT)
REQUESTED = PaymentRequested(ORDER, PAYMENT, ANN, TOTAL, "tok_ok")
HELD = OrderHeld(ORDER, PAYMENT, LATER)
CONFIRMED = OrderConfirmed(ORDER, PAYMENT, ANN, LINES, TOTAL)

RESERVED = (PLACED, MUG_RESERVED, POT_RESERVED, REQUESTED)


def cancelled(reason: str, payment_id: str = PAYMENT) -> OrderCancelled:
    return OrderCancelled(ORDER, payment_id, ANN, reason, LINES)


def expire(now: int) -> ExpireOrder:
    return ExpireOrder(patience_ms=MINUTE, review_ms=HOUR, now=now)
