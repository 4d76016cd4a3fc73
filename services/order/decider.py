"""The rules of an order, which is also the saga (process manager) of a purchase.

Happy path: placed, every line reserved, payment requested, confirmed. Compensation: a rejected line, a declined
payment, a cancel or the deadline leads to OrderCancelled, and catalog and payment undo their own part when they read
that event. A cancelled order stays cancelled; a success that arrives later is undone the same way.
"""

from dataclasses import dataclass
from uuid import NAMESPACE_URL, uuid5

from services.common.fields import carry
from services.order.commands import (
    CancelOrder,
    Command,
    ExpireOrder,
    PlaceOrder,
    RecordPaymentAuthorized,
    RecordPaymentDeclined,
    RecordPaymentHeld,
    RecordPaymentRefunded,
    RecordStockRejected,
    RecordStockReserved,
)
from services.order.events import (
    Event,
    LineReserved,
    OrderCancelled,
    OrderConfirmed,
    OrderHeld,
    OrderPlaced,
    PaymentRequested,
)
from shared.errors import Refused


@dataclass(frozen=True, slots=True)
class Unplaced:
    """The order has not been placed yet."""


@dataclass(frozen=True, slots=True)
class Placed:
    order: OrderPlaced
    reserved: frozenset[str]
    """SKUs of the lines that the catalog has reserved."""


@dataclass(frozen=True, slots=True)
class Reserved:
    order: OrderPlaced
    payment_id: str


@dataclass(frozen=True, slots=True)
class InReview:
    order: OrderPlaced
    payment_id: str
    held_at: int


@dataclass(frozen=True, slots=True)
class Confirmed:
    order: OrderPlaced
    payment_id: str


@dataclass(frozen=True, slots=True)
class Cancelled:
    order: OrderPlaced
    payment_id: str
    reason: str


Pending = Placed | Reserved | InReview
Order = Unplaced | Placed | Reserved | InReview | Confirmed | Cancelled

initial: Order = Unplaced()


def decide(command: Command, order: Order) -> list[Event]:
    match command, order:
        case PlaceOrder(), Unplaced():
            return [carry(OrderPlaced, command, at=command.now)]
        case PlaceOrder(), _:
            return []
        case _, Unplaced():
            raise Refused("order-unknown", "There is no such order.")
        case CancelOrder(), _:
            return _cancel(command, order)
        case _, Cancelled():
            return []
        case RecordStockReserved(), Placed():
            return _reserve(command.sku, order)
        case RecordStockRejected(), Placed():
            return [_cancelled(order, "out_of_stock")]
        case RecordPaymentHeld(), Reserved():
            return [OrderHeld(order.order.order_id, order.payment_id, command.now)]
        case RecordPaymentAuthorized(), Reserved() | InReview():
            return [_confirmed(order)]
        case RecordPaymentDeclined(), _:
            return [_cancelled(order, "payment_declined" if command.declined_by == "provider" else "fraud")]
        case RecordPaymentRefunded(), _:
            return [_cancelled(order, "customer")]  # support refunded the payment, so nothing is sent
        case ExpireOrder(), Placed() | Reserved() | InReview():
            expires_at = _expires_at(order, command.patience_ms, command.review_ms)
            return [_cancelled(order, "timeout")] if command.now >= expires_at else []
        case _:
            return []  # repeated, or overtaken by a later step


def evolve(order: Order, event: Event) -> Order:
    match order, event:
        case Unplaced(), OrderPlaced():
            return Placed(event, frozenset())
        case Placed(), LineReserved():
            return Placed(order.order, order.reserved | {event.sku})
        case Placed(), PaymentRequested():
            return Reserved(order.order, event.payment_id)
        case Reserved(), OrderHeld():
            return InReview(order.order, order.payment_id, event.at)
        case Reserved() | InReview(), OrderConfirmed():
            return Confirmed(order.order, order.payment_id)
        case Placed() | Reserved() | InReview() | Confirmed(), OrderCancelled():
            return Cancelled(order.order, event.payment_id, event.reason)
        case _:
            raise ValueError(f"{type(event).__name__} cannot follow in an order that is {type(order).__name__}")


def payment_of(order_id: str) -> str:
    """Derives the payment's id from the order's, so that an order has exactly one payment."""
    return str(uuid5(NAMESPACE_URL, f"till-roll:payment-of-order:{order_id}"))


def first_due(event: Event, patience_ms: int) -> int | None:
    """Returns the first deadline (unix ms) that the event sets, if any: only placing the order sets one."""
    return event.at + patience_ms if isinstance(event, OrderPlaced) else None


def next_due(order: Order, patience_ms: int, review_ms: int) -> int | None:
    """Returns when (unix ms) `ExpireOrder` will take effect if nothing else happens, or None for a final order."""
    return _expires_at(order, patience_ms, review_ms) if isinstance(order, Pending) else None


def _expires_at(order: Pending, patience_ms: int, review_ms: int) -> int:
    return order.held_at + review_ms if isinstance(order, InReview) else order.order.at + patience_ms


def _reserve(sku: str, order: Placed) -> list[Event]:
    placed = order.order
    wanted = {line.sku for line in placed.lines}
    if sku not in wanted:
        raise Refused("line-unknown", f"{sku} is not in this order.")
    if sku in order.reserved:
        return []
    reserved = LineReserved(placed.order_id, sku)
    if order.reserved | {sku} < wanted:
        return [reserved]
    payment_id = payment_of(placed.order_id)
    request = PaymentRequested(placed.order_id, payment_id, placed.customer_id, placed.total, placed.payment_token)
    return [reserved, request]


def _cancel(command: CancelOrder, order: Pending | Confirmed | Cancelled) -> list[Event]:
    by_customer = command.by == "customer"
    if by_customer and command.customer_id != order.order.customer_id:
        raise Refused("order-unknown", "There is no such order.")  # a stranger must not learn that it exists
    if isinstance(order, Cancelled):
        return []
    if by_customer and isinstance(order, Confirmed):
        raise Refused("order-confirmed", "This order is confirmed. Ask support to cancel it.")
    return [_cancelled(order, "customer")]


def _confirmed(order: Reserved | InReview) -> OrderConfirmed:
    placed = order.order
    return OrderConfirmed(placed.order_id, order.payment_id, placed.customer_id, placed.lines, placed.total)


def _cancelled(order: Pending | Confirmed, reason: str) -> OrderCancelled:
    placed = order.order
    payment_id = "" if isinstance(order, Placed) else order.payment_id
    return OrderCancelled(placed.order_id, payment_id, placed.customer_id, reason, placed.lines)
