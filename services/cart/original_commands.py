"""Every command to a cart is a shopper's, or the deadline's."""

from services.cart.commands import AbandonCart, AddItem, CheckOut, Command, OpenCart, Product, RemoveItem, SetQuantity
from services.cart.decider import Open
from services.cart.events import (
    CartAbandoned,
    CartCheckedOut,
    CartOpened,
    ItemAdded,
    ItemRemoved,
    QuantitySet,
)
from services.replay.asked.asking import Decision
from shared.consumer import Incoming


def command(decision: Decision) -> Command | None:
    state = decision.state
    customer_id = state.customer_id if isinstance(state, Open) else ""
    match decision.recorded[0]:
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
            return CheckOut(
                event.customer_id,
                event.order_id,
                products,
                event.payment_token,
                event.shipping_method,
                event.recipient,
            )
        case CartAbandoned() as event:
            # How long a cart may idle is a setting, and was not recorded: as long as this one did.
            return AbandonCart(decision.now - event.idle_since, decision.now)
    return None


def heard(_message: Incoming, _decision: Decision) -> list[tuple[str, Command]]:
    return []
