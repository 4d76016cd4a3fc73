"""Support refunds and reviews, the provider answers; the rest is heard from orders.

What the risk check said is taken as it was: it judged by what it had seen by then. `till whatif fraud` asks it anew.
"""

from services.payment.commands import Command, RecordProviderAnswer, RefundPayment, ReviewPayment
from services.payment.events import (
    CaptureDeclined,
    PaymentApproved,
    PaymentAuthorized,
    PaymentCaptured,
    PaymentDeclined,
    PaymentHeldForReview,
    PaymentRefunded,
    PaymentVoided,
    RefundRequested,
)
from services.payment.reactions import react
from services.payment.risk import Allow, Hold, Refuse, Verdict
from services.replay.asked.asking import Decision
from shared.consumer import Incoming

HEARS = "service:payment"


def command(decision: Decision) -> Command | None:
    match decision.recorded[0]:
        case PaymentAuthorized() as event:
            return RecordProviderAnswer("authorize", "approved", event.reference)
        case PaymentDeclined(declined_by="provider") as event:
            return RecordProviderAnswer("authorize", "declined", "", event.reasons[0])
        case PaymentCaptured() as event:
            return RecordProviderAnswer("capture", "approved", event.reference)
        case CaptureDeclined() as event:
            return RecordProviderAnswer("capture", "declined", "", event.reason)
        case PaymentVoided() as event:
            return RecordProviderAnswer("void", "approved", event.reference)
        case PaymentRefunded() as event:
            return RecordProviderAnswer("refund", "approved", event.reference)
        case PaymentApproved():
            return ReviewPayment("approve")
        case PaymentDeclined(declined_by="review"):
            return ReviewPayment("reject")
        case RefundRequested() if decision.actor != HEARS:
            return RefundPayment()
    return None


def heard(message: Incoming, decision: Decision) -> list[tuple[str, Command]]:
    return react(message.type, message.data, message.stream_id, decision.now, lambda _: _verdict(decision))


def _verdict(decision: Decision) -> Verdict:
    match decision.recorded[0]:
        case PaymentHeldForReview() as event:
            return Hold(event.reasons)
        case PaymentDeclined(declined_by="risk") as event:
            return Refuse(event.reasons)
        case _:
            return Allow()
