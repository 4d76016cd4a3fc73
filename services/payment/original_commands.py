"""Finds the command that led to a payment's recorded events: the inverse of its decider, for `till whatif decisions`.

Support refunds and reviews, and the provider answers; all other commands are reactions to events of orders. The verdict
of the risk check is taken from the events, because it depended on what had been seen by then; `till whatif fraud`
assesses it again.
"""

from services.common.recorded_decision import RecordedDecision
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
from shared.messaging.incoming import Incoming

REACTION = "service:payment"


def original_command(decision: RecordedDecision) -> Command | None:
    """Returns the command; None where it was a reaction, or cannot be found."""
    match decision.events[0]:
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
        case RefundRequested() if decision.actor != REACTION:
            return RefundPayment()
    return None


def reacted_commands(message: Incoming, decision: RecordedDecision) -> list[tuple[str, Command]]:
    """Returns the commands, by stream, that payments answer an order's event with."""
    return react(message, decision.now, lambda _: _recorded_verdict(decision))


def _recorded_verdict(decision: RecordedDecision) -> Verdict:
    match decision.events[0]:
        case PaymentHeldForReview() as event:
            return Hold(event.reasons)
        case PaymentDeclined(declined_by="risk") as event:
            return Refuse(event.reasons)
        case _:
            return Allow()
