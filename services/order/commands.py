"""What an order is asked, or hears from stock and payment. Each may come twice, and in any order."""

from dataclasses import dataclass
from typing import Literal

from services.order.events import Line
from shared.money import Money


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
    """Name and address, sealed with the customer's key."""
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
    """Not authorised; or authorised, and then not captured."""

    declined_by: str
    """`provider`, or `risk` or `review` of our own."""


@dataclass(frozen=True, slots=True)
class RecordPaymentRefunded:
    pass


@dataclass(frozen=True, slots=True)
class CancelOrder:
    by: Literal["customer", "support"]
    customer_id: str = ""
    """Of the customer who asks. Support asks for anyone."""


@dataclass(frozen=True, slots=True)
class ExpireOrder:
    """Asked by the deadline."""

    patience_ms: int
    """How long an order may take."""
    review_ms: int
    """How long a review of its payment may take."""
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
