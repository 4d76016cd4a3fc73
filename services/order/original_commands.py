"""Customers and support cancel, the deadline expires; the rest is heard from cart, stock and payment."""

from services.order.commands import CancelOrder, Command, ExpireOrder
from services.order.decider import InReview, Placed, Reserved
from services.order.events import OrderCancelled
from services.order.process import react
from services.replay.asked.asking import Decision
from shared.consumer import Incoming

HEARS = "service:order"


def command(decision: Decision) -> Command | None:
    event, state = decision.recorded[0], decision.state
    if not isinstance(event, OrderCancelled) or decision.actor == HEARS:
        return None
    if decision.actor == "system:deadline":
        # How long it may take is a setting, and was not recorded: as long as this one took.
        placed = state.order.at if isinstance(state, Placed | Reserved | InReview) else decision.now
        held = state.held_at if isinstance(state, InReview) else decision.now
        return ExpireOrder(decision.now - placed, decision.now - held, decision.now)
    return CancelOrder("customer" if decision.actor == event.customer_id else "support", decision.actor)


def heard(message: Incoming, decision: Decision) -> list[tuple[str, Command]]:
    return react(message.type, message.data, message.stream_id, decision.now)
