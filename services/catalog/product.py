"""The latest of a product, as other services may know it: the documents of the topic `catalog.products`."""

from dataclasses import dataclass

from services.catalog.decider import Listed, Stock
from shared.money import Money


@dataclass(frozen=True, slots=True)
class Product:
    sku: str
    name: str
    price: Money
    withdrawn: bool
    version: int
    """Of the stock stream: by it a reader knows which of two is the later one."""


def announce(stock: Stock, version: int) -> Product | None:
    """At every version, also where only pieces came or went: who waits for a version must see it come."""
    if isinstance(stock, Listed):
        return Product(stock.sku, stock.name, stock.price, stock.withdrawn, version)
    return None
