"""Events of a product. Each class has the fields of its newest schema in `schemas/catalog`, in the same order.

Each event names its SKU: the order reacts to the event alone and must know which of its lines is meant.
"""

from dataclasses import dataclass

from services.common.money import Money


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
    """Pieces counted minus pieces expected; negative if some were missing."""
    counted: int | None
    """Pieces on hand; None in events of the oldest schema, which lacked this field."""


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
    """0 if the release overtook its reservation: nothing is returned, and the reservation will be refused."""


@dataclass(frozen=True, slots=True)
class StockSold:
    sku: str
    order_id: str
    quantity: int


@dataclass(frozen=True, slots=True)
class StockReturned:
    """The pieces were sold, but the order was then cancelled by support or because the capture failed."""

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
