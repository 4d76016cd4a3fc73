"""The rules of a payment. At most one operation of the provider is outstanding at a time, until it has answered.

A cancel that arrives while an answer is outstanding is remembered: what the provider then approves is given back.
"""

from dataclasses import dataclass
from typing import NamedTuple

from services.common.money import Money
from services.payment.commands import (
    CancelPayment,
    CapturePayment,
    Command,
    Kind,
    RecordProviderAnswer,
    RefundPayment,
    RequestPayment,
    ReviewPayment,
)
from services.payment.events import (
    AuthorizationRequested,
    CaptureDeclined,
    CaptureRequested,
    Event,
    PaymentApproved,
    PaymentAuthorized,
    PaymentCancelled,
    PaymentCaptured,
    PaymentDeclined,
    PaymentHeldForReview,
    PaymentRefunded,
    PaymentVoided,
    RefundRequested,
    VoidRequested,
)
from services.payment.risk import Allow, Hold, Refuse
from shared.errors import Refused


class Charge(NamedTuple):
    """The payment that the provider is asked for. Every event starts with its ids, and most with more of its fields."""

    payment_id: str
    order_id: str
    customer_id: str
    amount: Money
    payment_token: str


@dataclass(frozen=True, slots=True)
class Unrequested:
    cancelled: bool = False
    """True if the cancel overtook the request, which is then ignored."""


@dataclass(frozen=True, slots=True)
class Held:
    charge: Charge


@dataclass(frozen=True, slots=True)
class Authorizing:
    charge: Charge
    cancelled: bool = False


@dataclass(frozen=True, slots=True)
class Authorized:
    charge: Charge


@dataclass(frozen=True, slots=True)
class Capturing:
    charge: Charge
    cancelled: bool = False


@dataclass(frozen=True, slots=True)
class Captured:
    charge: Charge


@dataclass(frozen=True, slots=True)
class Voiding:
    charge: Charge


@dataclass(frozen=True, slots=True)
class Refunding:
    charge: Charge


@dataclass(frozen=True, slots=True)
class Declined:
    charge: Charge


@dataclass(frozen=True, slots=True)
class Cancelled:
    """The payment was cancelled while it was held for review, so the provider was never asked."""

    charge: Charge


@dataclass(frozen=True, slots=True)
class Voided:
    charge: Charge


@dataclass(frozen=True, slots=True)
class Refunded:
    charge: Charge


Outstanding = Authorizing | Capturing | Voiding | Refunding
Requested = Held | Outstanding | Authorized | Captured | Declined | Cancelled | Voided | Refunded
Payment = (
    Unrequested
    | Held
    | Authorizing
    | Authorized
    | Capturing
    | Captured
    | Voiding
    | Refunding
    | Declined
    | Cancelled
    | Voided
    | Refunded
)

initial: Payment = Unrequested()

KINDS: dict[type, Kind] = {Authorizing: "authorize", Capturing: "capture", Voiding: "void", Refunding: "refund"}


@dataclass(frozen=True, slots=True)
class Operation:
    """One operation to ask of the provider, repeated until it answers."""

    kind: Kind
    charge: Charge

    @property
    def key(self) -> str:
        """The idempotency key: repeated with the same key, the provider performs the operation once."""
        return f"{self.charge.payment_id}:{self.kind}"


def next_operation(payment: Payment) -> Operation | None:
    """Returns the operation that the provider has still to answer, if any: the errand that this payment wants."""
    return Operation(KINDS[type(payment)], payment.charge) if isinstance(payment, Outstanding) else None


def decide(command: Command, payment: Payment) -> list[Event]:
    match command, payment:
        case RequestPayment(), Unrequested(cancelled=False):
            return _request(command)
        case RequestPayment(), _:
            return []
        case CancelPayment(), _:
            return _cancel(command, payment)
        case _, Unrequested():
            raise Refused("payment-unknown", "There is no such payment.")
        case RecordProviderAnswer(), Authorizing() | Capturing() | Voiding() | Refunding():
            return _record(command, payment) if command.kind == KINDS[type(payment)] else []
        case RecordProviderAnswer(), _:
            return []  # recorded before
        case CapturePayment(), _:
            return _capture(payment)
        case ReviewPayment(), _:
            return _review(command, payment)
        case RefundPayment(), _:
            return _refund(payment)


def evolve(payment: Payment, event: Event) -> Payment:
    match payment, event:
        case Unrequested() | Held(), AuthorizationRequested():
            return Authorizing(_charge(event))
        case Authorizing(), PaymentAuthorized():
            return Authorized(payment.charge)
        case Authorized(), CaptureRequested():
            return Capturing(payment.charge)
        case Capturing(), PaymentCaptured():
            return Captured(payment.charge)
        case Unrequested(), PaymentHeldForReview():
            return Held(_charge(event))
        case Held(), PaymentApproved():
            return payment
        case Unrequested() | Held() | Authorizing(), PaymentDeclined():
            return Declined(_charge(event))
        case Unrequested(), PaymentCancelled():
            return Unrequested(cancelled=True)
        case Held(), PaymentCancelled():
            return Cancelled(payment.charge)
        case Authorizing(), PaymentCancelled():
            return Authorizing(payment.charge, cancelled=True)
        case Capturing(), PaymentCancelled():
            return Capturing(payment.charge, cancelled=True)
        case Capturing(), CaptureDeclined():
            return Authorized(payment.charge)
        case Authorized(), VoidRequested():
            return Voiding(payment.charge)
        case Voiding(), PaymentVoided():
            return Voided(payment.charge)
        case Captured(), RefundRequested():
            return Refunding(payment.charge)
        case Refunding(), PaymentRefunded():
            return Refunded(payment.charge)
        case _:
            raise ValueError(f"{type(event).__name__} cannot follow in a payment that is {type(payment).__name__}")


def _charge(event: AuthorizationRequested | PaymentHeldForReview | PaymentDeclined) -> Charge:
    return Charge(event.payment_id, event.order_id, event.customer_id, event.amount, event.payment_token)


def _request(command: RequestPayment) -> list[Event]:
    charge = Charge(command.payment_id, command.order_id, command.customer_id, command.amount, command.payment_token)
    match command.risk:
        case Allow():
            return [AuthorizationRequested(*charge)]
        case Hold(reasons):
            return [PaymentHeldForReview(*charge, reasons)]
        case Refuse(reasons):
            return [PaymentDeclined(*charge, "risk", reasons)]


def _review(command: ReviewPayment, payment: Requested) -> list[Event]:
    if not isinstance(payment, Held):
        raise Refused("payment-not-held", "This payment is not waiting for a review.")
    charge = payment.charge
    if command.decision == "reject":
        return [PaymentDeclined(*charge, "review", ("rejected in review",))]
    return [PaymentApproved(*charge[:2]), AuthorizationRequested(*charge)]


def _capture(payment: Requested) -> list[Event]:
    match payment:
        case Authorized(charge):
            return [CaptureRequested(*charge[:2])]
        case Held() | Authorizing() | Declined():  # if this were ignored, an order would be sent unpaid
            raise Refused("payment-not-authorized", "Nothing is authorised that could be captured.")
        case _:
            return []  # requested already, done, or cancelled since


def _cancel(command: CancelPayment, payment: Payment) -> list[Event]:
    ids = command.payment_id, command.order_id
    match payment:
        case Authorized():
            return [VoidRequested(*ids)]
        case Captured():
            return [RefundRequested(*ids)]
        case Held() | Unrequested(cancelled=False) | Authorizing(cancelled=False) | Capturing(cancelled=False):
            return [PaymentCancelled(*ids)]
        case _:
            return []


def _refund(payment: Requested) -> list[Event]:
    match payment:
        case Captured(charge):
            return [RefundRequested(*charge[:2])]
        case Refunding() | Refunded():
            return []
        case _:
            raise Refused("payment-not-captured", "Nothing has been taken that could be refunded.")


def _record(answer: RecordProviderAnswer, payment: Outstanding) -> list[Event]:
    ids = payment.charge[:2]
    done = *payment.charge[:4], answer.reference
    match payment, answer.outcome:
        case Authorizing(cancelled=cancelled), "approved":
            return [PaymentAuthorized(*done), *([VoidRequested(*ids)] if cancelled else [])]
        case Authorizing(charge), _:
            return [PaymentDeclined(*charge, "provider", (answer.reason,))]
        case Capturing(cancelled=cancelled), "approved":
            return [PaymentCaptured(*done), *([RefundRequested(*ids)] if cancelled else [])]
        case Capturing(), _:
            return [CaptureDeclined(*ids, answer.reason), VoidRequested(*ids)]
        case Voiding(), "approved":
            return [PaymentVoided(*done)]
        case Refunding(), "approved":
            return [PaymentRefunded(*done)]
        case _:
            return []  # a refused void or refund is still owed to the customer, and is asked for again
