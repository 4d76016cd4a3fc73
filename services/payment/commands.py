"""Commands to a payment: from its order, from support, and from the call to the provider."""

from dataclasses import dataclass
from typing import Literal

from services.common.money import Money
from services.payment.risk import Verdict

Kind = Literal["authorize", "capture", "void", "refund"]
"""An operation of the payment provider."""
Outcome = Literal["approved", "declined"]


@dataclass(frozen=True, slots=True)
class RequestPayment:
    payment_id: str
    order_id: str
    customer_id: str
    amount: Money
    payment_token: str
    risk: Verdict


@dataclass(frozen=True, slots=True)
class CapturePayment:
    """The order was confirmed: takes the authorised money."""


@dataclass(frozen=True, slots=True)
class CancelPayment:
    """The order was cancelled: gives back what was taken, and takes nothing more."""

    payment_id: str
    order_id: str


@dataclass(frozen=True, slots=True)
class RefundPayment:
    """Support gives the money back."""


@dataclass(frozen=True, slots=True)
class ReviewPayment:
    """Support decides on a payment that is held for review."""

    decision: Literal["approve", "reject"]


@dataclass(frozen=True, slots=True)
class RecordProviderAnswer:
    """Records the provider's answer. A timeout is no answer: the provider is then asked again."""

    kind: Kind
    outcome: Outcome
    reference: str
    reason: str = ""


Command = RequestPayment | CapturePayment | CancelPayment | RefundPayment | ReviewPayment | RecordProviderAnswer
