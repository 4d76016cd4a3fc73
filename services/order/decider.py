"""The rules of an order, and the process it is: stock for every line, then the money, then confirmed, or undone.

A cancelled order stays cancelled. Whatever is heard later is undone by who did it: stock and payment hear of the
cancelling themselves.
"""

from dataclasses import dataclass
from uuid import NAMESPACE_URL, uuid5

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
    """Not an order yet."""


@dataclass(frozen=True, slots=True)
class Placed:
    order: OrderPlaced
    reserved: frozenset[str]
    """The SKUs of the lines that stock has put aside."""


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
            return [_placed(command)]
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
            return [_cancelled(order, "customer")]  # support gave the money back: there is nothing to send
        case ExpireOrder(), Placed() | Reserved() | InReview():
            expires_at = _expires_at(order, command.patience_ms, command.review_ms)
            return [_cancelled(order, "timeout")] if command.now >= expires_at else []
        case _:
            return []  # heard twice, or overtaken


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
    """Derived, so that an order can only ever be paid by one payment."""
    return str(uuid5(NAMESPACE_URL, f"till-roll:payment-of-order:{order_id}"))


def first_due(event: Event, patience_ms: int) -> int | None:
    """The moment (unix ms) at which to look whether the order is done. Only placing it sets one."""
    return event.at + patience_ms if isinstance(event, OrderPlaced) else None


def next_due(order: Order, patience_ms: int, review_ms: int) -> int | None:
    """The moment from which `ExpireOrder` will be granted, if nothing else happens."""
    return _expires_at(order, patience_ms, review_ms) if isinstance(order, Pending) else None


def _expires_at(order: Pending, patience_ms: int, review_ms: int) -> int:
    return order.held_at + review_ms if isinstance(order, InReview) else order.order.at + patience_ms


def _placed(command: PlaceOrder) -> OrderPlaced:
    return OrderPlaced(
        order_id=command.order_id,
        cart_id=command.cart_id,
        customer_id=command.customer_id,
        lines=command.lines,
        total=command.total,
        payment_token=command.payment_token,
        shipping_method=command.shipping_method,
        recipient=command.recipient,
        at=command.now,
    )


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
        raise Refused("order-unknown", "There is no such order.")  # nor may a stranger learn that there is
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
