"""What can happen to a product. Each class has the fields of its newest schema in `schemas/catalog`.

Every one names its SKU: an order reacts to the event alone and must know which of its lines is meant.
"""

from dataclasses import dataclass

from shared.money import Money


@dataclass(frozen=True, slots=True)
class ProductListed:
    sku: str
    name: str
    price: Money
    stock: int


@dataclass(frozen=True, slots=True)
class ProductRenamed:
    sku: str
    old_name: str
    new_name: str


@dataclass(frozen=True, slots=True)
class PriceChanged:
    sku: str
    old_price: Money
    new_price: Money


@dataclass(frozen=True, slots=True)
class StockCounted:
    sku: str
    difference: int
    """To what the books had: pieces more, or fewer where negative."""
    counted: int | None
    """Pieces on hand; None in what was once recorded without."""


@dataclass(frozen=True, slots=True)
class ProductWithdrawn:
    sku: str


@dataclass(frozen=True, slots=True)
class ProductRelisted:
    sku: str


@dataclass(frozen=True, slots=True)
class StockReserved:
    sku: str
    order_id: str
    quantity: int


@dataclass(frozen=True, slots=True)
class StockRejected:
    sku: str
    order_id: str
    quantity: int
    available: int


@dataclass(frozen=True, slots=True)
class StockReleased:
    sku: str
    order_id: str
    quantity: int
    """0 where the release overtook its reservation: nothing goes back, and nothing will be held."""


@dataclass(frozen=True, slots=True)
class StockSold:
    sku: str
    order_id: str
    quantity: int


@dataclass(frozen=True, slots=True)
class StockReturned:
    """Sold, and yet the order was cancelled: by support, or because the money could not be taken."""

    sku: str
    order_id: str
    quantity: int


Event = (
    ProductListed
    | ProductRenamed
    | PriceChanged
    | StockCounted
    | ProductWithdrawn
    | ProductRelisted
    | StockReserved
    | StockRejected
    | StockReleased
    | StockSold
    | StockReturned
)
