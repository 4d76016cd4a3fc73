"""An operator puts and withdraws products; the rest is heard from orders."""

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
from services.replay.asked.asking import Decision
from shared.consumer import Incoming


def command(decision: Decision) -> Command | None:
    match decision.recorded[0]:
        case ProductListed() as event:
            return PutProduct(event.sku, event.name, event.price, event.stock)
        case ProductWithdrawn() as event:
            return WithdrawProduct(event.sku)
        case ProductRelisted() | ProductRenamed() | PriceChanged() | StockCounted():
            return _put(decision.state, decision.recorded)
    return None


def _put(product: Stock, changes: Sequence[Event]) -> Command | None:
    """All that the product shall be was said; recorded is what of it was new."""
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


def heard(message: Incoming, decision: Decision) -> list[tuple[str, Command]]:
    return react(message.type, message.data, message.stream_id, decision.now)
