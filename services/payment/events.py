"""Events of a payment. Each class has the fields of its newest schema in `schemas/payment`, in the same order.

`...Requested` records what the provider is going to be asked, before it is asked. The other names say what was done.
"""

from dataclasses import dataclass

from services.common.money import Money


@dataclass(frozen=True, slots=True)
class PaymentHeldForReview:
    payment_id: str
    order_id: str
    customer_id: str
    amount: Money
    payment_token: str
    reasons: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class PaymentApproved:
    payment_id: str
    order_id: str


@dataclass(frozen=True, slots=True)
class AuthorizationRequested:
    payment_id: str
    order_id: str
    customer_id: str
    amount: Money
    payment_token: str


@dataclass(frozen=True, slots=True)
class PaymentAuthorized:
    payment_id: str
    order_id: str
    customer_id: str
    amount: Money
    reference: str


@dataclass(frozen=True, slots=True)
class PaymentDeclined:
    payment_id: str
    order_id: str
    customer_id: str
    amount: Money
    payment_token: str
    declined_by: str
    """`provider`, or our own `risk` check or `review`."""
    reasons: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class PaymentCancelled:
    """The order was cancelled before money was taken. What the provider still approves will be given back."""

    payment_id: str
    order_id: str


@dataclass(frozen=True, slots=True)
class CaptureRequested:
    payment_id: str
    order_id: str


@dataclass(frozen=True, slots=True)
class PaymentCaptured:
    payment_id: str
    order_id: str
    customer_id: str
    amount: Money
    reference: str


@dataclass(frozen=True, slots=True)
class CaptureDeclined:
    payment_id: str
    order_id: str
    reason: str


@dataclass(frozen=True, slots=True)
class VoidRequested:
    payment_id: str
    order_id: str


@dataclass(frozen=True, slots=True)
class PaymentVoided:
    payment_id: str
    order_id: str
    customer_id: str
    amount: Money
    reference: str


@dataclass(frozen=True, slots=True)
class RefundRequested:
    payment_id: str
    order_id: str


@dataclass(frozen=True, slots=True)
class PaymentRefunded:
    payment_id: str
    order_id: str
    customer_id: str
    amount: Money
    reference: str


Event = (
    PaymentHeldForReview
    | PaymentApproved
    | AuthorizationRequested
    | PaymentAuthorized
    | PaymentDeclined
    | PaymentCancelled
    | CaptureRequested
    | PaymentCaptured
    | CaptureDeclined
    | VoidRequested
    | PaymentVoided
    | RefundRequested
    | PaymentRefunded
)
