"""Commands to an order: from stock and payment, from customers and support, and from the deadline.

Any of them may come twice, or too late.
"""

from dataclasses import dataclass
from typing import Literal

from services.common.money import Money
from services.order.events import Line


@dataclass(frozen=True, slots=True)
class PlaceOrder:
    order_id: str
    cart_id: str
    customer_id: str
    lines: tuple[Line, ...]
    total: Money
    payment_token: str
    shipping_method: str
    recipient: str
    """Name and address, encrypted with the customer's key."""
    now: int
    """Unix milliseconds, here and in the other commands."""


@dataclass(frozen=True, slots=True)
class RecordStockReserved:
    sku: str


@dataclass(frozen=True, slots=True)
class RecordStockRejected:
    sku: str


@dataclass(frozen=True, slots=True)
class RecordPaymentHeld:
    now: int


@dataclass(frozen=True, slots=True)
class RecordPaymentAuthorized:
    pass


@dataclass(frozen=True, slots=True)
class RecordPaymentDeclined:
    """The payment was not authorised, or was authorised and then not captured."""

    declined_by: str
    """`provider`, or our own `risk` check or `review`."""


@dataclass(frozen=True, slots=True)
class RecordPaymentRefunded:
    pass


@dataclass(frozen=True, slots=True)
class CancelOrder:
    by: Literal["customer", "support"]
    customer_id: str = ""
    """The customer who asks; empty for support, who may cancel any order."""


@dataclass(frozen=True, slots=True)
class ExpireOrder:
    """Cancels an order that has taken too long. The deadline sends it."""

    patience_ms: int
    """Time that an order may take to be confirmed."""
    review_ms: int
    """Time that the review of a held payment may take."""
    now: int


Command = (
    PlaceOrder
    | RecordStockReserved
    | RecordStockRejected
    | RecordPaymentHeld
    | RecordPaymentAuthorized
    | RecordPaymentDeclined
    | RecordPaymentRefunded
    | CancelOrder
    | ExpireOrder
)
