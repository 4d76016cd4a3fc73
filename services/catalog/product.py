"""The latest of a product, as other services may know it: the documents of the topic `catalog.products`."""

from collections.abc import Sequence
from dataclasses import dataclass

from services.catalog.decider import Listed, Stock
from services.catalog.events import (
    Event,
    PriceChanged,
    ProductListed,
    ProductRelisted,
    ProductRenamed,
    ProductWithdrawn,
)
from shared.money import Money

SHOWN = (ProductListed, ProductRenamed, PriceChanged, ProductWithdrawn, ProductRelisted)


@dataclass(frozen=True, slots=True)
class Product:
    sku: str
    name: str
    price: Money
    withdrawn: bool
    version: int
    """Of the stock stream: by it a reader knows which of two is the later one."""


def announce(stock: Stock, version: int, events: Sequence[Event]) -> Product | None:
    """What to publish after `events` led to `stock`; None where they changed nothing that is shown."""
    if isinstance(stock, Listed) and any(isinstance(event, SHOWN) for event in events):
        return Product(stock.sku, stock.name, stock.price, stock.withdrawn, version)
    return None
