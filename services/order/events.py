"""What can happen to an order. Each class has the fields of its newest schema in `schemas/order`, in order.

Stock and payment react to the event alone: it carries all they need.
"""

from dataclasses import dataclass

from shared.money import Money


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
    """Empty where no payment had been asked for: none will be."""
    customer_id: str
    reason: str
    lines: tuple[Line, ...]
    """All of them. Whether a line is reserved may not be known yet: its release goes out all the same."""


Event = OrderPlaced | LineReserved | PaymentRequested | OrderHeld | OrderConfirmed | OrderCancelled
