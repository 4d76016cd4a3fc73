"""Events of an order. Each class has the fields of its newest schema in `schemas/order`, in the same order.

Catalog and payment react to the event alone, so it carries all that they need.
"""

from dataclasses import dataclass

from services.common.money import Money


@dataclass(frozen=True, slots=True)
class Line:
    sku: str
    name: str
    quantity: int
    unit_price: Money


@dataclass(frozen=True, slots=True)
class OrderPlaced:
    order_id: str
    cart_id: str
    customer_id: str
    lines: tuple[Line, ...]
    total: Money
    payment_token: str
    shipping_method: str
    recipient: str
    at: int


@dataclass(frozen=True, slots=True)
class LineReserved:
    order_id: str
    sku: str


@dataclass(frozen=True, slots=True)
class PaymentRequested:
    order_id: str
    payment_id: str
    customer_id: str
    amount: Money
    payment_token: str


@dataclass(frozen=True, slots=True)
class OrderHeld:
    order_id: str
    payment_id: str
    at: int


@dataclass(frozen=True, slots=True)
class OrderConfirmed:
    order_id: str
    payment_id: str
    customer_id: str
    lines: tuple[Line, ...]
    total: Money


@dataclass(frozen=True, slots=True)
class OrderCancelled:
    order_id: str
    payment_id: str
    """Empty if no payment was requested; none will be requested any more."""
    customer_id: str
    reason: str
    lines: tuple[Line, ...]
    """All lines of the order. A line may not be known to be reserved yet; it is released all the same."""


Event = OrderPlaced | LineReserved | PaymentRequested | OrderHeld | OrderConfirmed | OrderCancelled
