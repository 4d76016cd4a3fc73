"""What may be asked of a payment: by its order, by support, and by whoever has spoken with the provider."""

from dataclasses import dataclass
from typing import Literal

from services.payment.risk import Verdict
from shared.money import Money

Kind = Literal["authorize", "capture", "void", "refund"]
"""What a provider can be asked to do."""
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
    """The order is confirmed."""


@dataclass(frozen=True, slots=True)
class CancelPayment:
    """The order will not be: what was taken goes back, and nothing more is taken."""

    payment_id: str
    order_id: str


@dataclass(frozen=True, slots=True)
class RefundPayment:
    """Asked by support."""


@dataclass(frozen=True, slots=True)
class ReviewPayment:
    """Asked by support."""

    decision: Literal["approve", "reject"]


@dataclass(frozen=True, slots=True)
class RecordProviderAnswer:
    """Only what the provider has said. That it said nothing in time is no answer: it is asked again."""

    kind: Kind
    outcome: Outcome
    reference: str
    reason: str = ""


Command = RequestPayment | CapturePayment | CancelPayment | RefundPayment | ReviewPayment | RecordProviderAnswer
