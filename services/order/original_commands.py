"""Finds the command that led to an order's recorded events: the inverse of its decider, for `till whatif decisions`.

Customers and support cancel, and the deadline expires; all other commands are reactions to events of cart, stock and
payment.
"""

from services.common.recorded_decision import RecordedDecision
from services.order.commands import CancelOrder, Command, ExpireOrder
from services.order.decider import InReview, Placed, Reserved
from services.order.events import OrderCancelled
from services.order.reactions import react
from shared.messaging.incoming import Incoming

REACTION = "service:order"


def original_command(decision: RecordedDecision) -> Command | None:
    """Returns the command; None where it was a reaction, or cannot be found."""
    event, state = decision.events[0], decision.state
    if not isinstance(event, OrderCancelled) or decision.actor == REACTION:
        return None
    if decision.actor == "system:deadline":
        # The timeouts are settings and were not recorded: assume the time that this order took.
        placed = state.order.at if isinstance(state, Placed | Reserved | InReview) else decision.now
        held = state.held_at if isinstance(state, InReview) else decision.now
        return ExpireOrder(decision.now - placed, decision.now - held, decision.now)
    return CancelOrder("customer" if decision.actor == event.customer_id else "support", decision.actor)


def reacted_commands(message: Incoming, decision: RecordedDecision) -> list[tuple[str, Command]]:
    """Returns the commands, by stream, that orders answer another service's event with."""
    return react(message, decision.now)
