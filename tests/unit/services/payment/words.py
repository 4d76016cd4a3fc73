"""The vocabulary of the payment's tests: one payment of Ann, and short names for commands, events and answers."""

from services.common.money import Money
from services.payment import decider
from services.payment.commands import (
    CancelPayment,
    CapturePayment,
    Kind,
    RecordProviderAnswer,
    RefundPayment,
    RequestPayment,
    ReviewPayment,
)
from services.payment.decider import Charge
from services.payment.events import (
    AuthorizationRequested,
    CaptureDeclined,
    CaptureRequested,
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
from services.payment.risk import Allow, Verdict
from tests.unit.services.given import Scenario

given = Scenario(decider).given

ANN = "0190a5c0-0000-7000-8000-0000000000aa"
ORDER = "6f2c0f4e-0000-5000-8000-000000000001"
PAYMENT = "b1f3c7a2-0000-5000-8000-000000000001"
IDS = PAYMENT, ORDER
TOTAL = Money(6370, "EUR")
CHARGE = Charge(PAYMENT, ORDER, ANN, TOTAL, "tok_ok")
DONE = PAYMENT, ORDER, ANN, TOTAL, "ref-1"
ODD = ("very odd",)

CAPTURE, CANCEL, REFUND = CapturePayment(), CancelPayment(PAYMENT, ORDER), RefundPayment()
APPROVE, REJECT = ReviewPayment("approve"), ReviewPayment("reject")

AUTHORIZING = AuthorizationRequested(*CHARGE)
AUTHORIZED = PaymentAuthorized(*DONE)
CAPTURING = CaptureRequested(*IDS)
CAPTURED = PaymentCaptured(*DONE)
CAPTURE_DECLINED = CaptureDeclined(*IDS, "too late")
VOIDING = VoidRequested(*IDS)
VOIDED = PaymentVoided(*DONE)
REFUNDING = RefundRequested(*IDS)
REFUNDED = PaymentRefunded(*DONE)
HELD = PaymentHeldForReview(*CHARGE, ODD)
APPROVED = PaymentApproved(*IDS)
CANCELLED = PaymentCancelled(*IDS)


def declined(by: str, *reasons: str) -> PaymentDeclined:
    return PaymentDeclined(*CHARGE, by, reasons or ODD)


def request(risk: Verdict | None = None) -> RequestPayment:
    return RequestPayment(*CHARGE, risk or Allow())


def yes(kind: Kind) -> RecordProviderAnswer:
    return RecordProviderAnswer(kind, "approved", "ref-1")


def no(kind: Kind, reason: str = "no money") -> RecordProviderAnswer:
    return RecordProviderAnswer(kind, "declined", "ref-1", reason)
