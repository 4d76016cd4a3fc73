"""Finds the command that led to a cart's recorded events: the inverse of its decider, for `till whatif decisions`.

Every command to a cart comes from a shopper or from its deadline. When `decider.py` changes, this changes with it.
"""

from services.cart.commands import AbandonCart, AddItem, CheckOut, Command, OpenCart, Product, RemoveItem, SetQuantity
from services.cart.decider import Open
from services.cart.events import CartAbandoned, CartCheckedOut, CartOpened, ItemAdded, ItemRemoved, QuantitySet
from services.common.fields import carry
from services.common.recorded_decision import RecordedDecision
from shared.messaging.incoming import Incoming


def original_command(decision: RecordedDecision) -> Command | None:
    """Returns the command; None where it was a reaction, or cannot be found."""
    state = decision.state
    customer_id = state.customer_id if isinstance(state, Open) else ""
    match decision.events[0]:
        case CartOpened() as event:
            return OpenCart(event.customer_id, event.at)
        case ItemAdded() as event:
            product = Product(event.name, event.unit_price)
            return AddItem(customer_id, event.sku, event.quantity, product, event.at)
        case QuantitySet() as event if isinstance(state, Open) and event.sku in state.lines:
            product = Product(state.lines[event.sku].name, event.unit_price)
            return SetQuantity(customer_id, event.sku, event.quantity, product, event.at)
        case ItemRemoved() as event:
            return RemoveItem(customer_id, event.sku, event.at)
        case CartCheckedOut() as event:
            products = {line.sku: Product(line.name, line.unit_price) for line in event.lines}
            return carry(CheckOut, event, products=products)
        case CartAbandoned() as event:
            # The idle limit is a setting and was not recorded: assume the time that this cart was idle.
            return AbandonCart(decision.now - event.idle_since, decision.now)
    return None


def reacted_commands(_message: Incoming, _decision: RecordedDecision) -> list[tuple[str, Command]]:
    """Returns nothing: a cart reacts to no other service."""
    return []
