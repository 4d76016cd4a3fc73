"""The current product as other services see it: the documents of the compacted topic `catalog.products`."""

from dataclasses import dataclass

from services.catalog.decider import Listed, Stock
from services.common.money import Money


@dataclass(frozen=True, slots=True)
class Product:
    sku: str
    name: str
    price: Money
    withdrawn: bool
    version: int
    """The version of the stock stream, by which a reader tells the later of two documents."""


def announce(stock: Stock, version: int) -> Product | None:
    """Returns the product's document. There is one for every version, so that a reader can wait for any version."""
    if isinstance(stock, Listed):
        return Product(stock.sku, stock.name, stock.price, stock.withdrawn, version)
    return None
