"""Finds the command that led to a product's recorded events: the inverse of its decider, for `till whatif decisions`.

Operators put and withdraw products; all other commands are reactions to events of orders.
"""

from collections.abc import Sequence

from services.catalog.commands import Command, PutProduct, WithdrawProduct
from services.catalog.decider import Listed, Stock
from services.catalog.events import (
    Event,
    PriceChanged,
    ProductListed,
    ProductRelisted,
    ProductRenamed,
    ProductWithdrawn,
    StockCounted,
)
from services.catalog.reactions import react
from services.common.recorded_decision import RecordedDecision
from shared.messaging.incoming import Incoming


def original_command(decision: RecordedDecision) -> Command | None:
    """Returns the command; None where it was a reaction, or cannot be found."""
    match decision.events[0]:
        case ProductListed() as event:
            return PutProduct(event.sku, event.name, event.price, event.stock)
        case ProductWithdrawn() as event:
            return WithdrawProduct(event.sku)
        case ProductRelisted() | ProductRenamed() | PriceChanged() | StockCounted():
            return _put(decision.state, decision.events)
    return None


def _put(product: Stock, changes: Sequence[Event]) -> Command | None:
    """Rebuilds the full product that was put: the recorded events hold only the fields that changed."""
    if not isinstance(product, Listed):
        return None
    name, price, stock = product.name, product.price, product.shelf.on_hand
    for change in changes:
        match change:
            case ProductRenamed():
                name = change.new_name
            case PriceChanged():
                price = change.new_price
            case StockCounted():
                stock += change.difference
    return PutProduct(product.sku, name, price, stock)


def reacted_commands(message: Incoming, decision: RecordedDecision) -> list[tuple[str, Command]]:
    """Returns the commands, by stream, that the catalog answers another service's event with."""
    return react(message, decision.now)
