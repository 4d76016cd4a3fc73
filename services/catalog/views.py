"""The read model of the catalog that shoppers browse: one row per product, folded from its stream."""

from sqlalchemy import BigInteger, Text
from sqlmodel import Field, SQLModel

from services.catalog.events import (
    PriceChanged,
    ProductListed,
    ProductRelisted,
    ProductRenamed,
    ProductWithdrawn,
    StockCounted,
    StockReleased,
    StockReserved,
    StockReturned,
)
from shared.messaging.incoming import Incoming
from shared.store.views import RowView


class ProductRow(SQLModel):
    sku: str = Field(sa_type=Text, primary_key=True)
    name: str = Field(sa_type=Text)
    price: int = Field(sa_type=BigInteger)
    currency: str = Field(sa_type=Text)
    available: int
    withdrawn: bool
    version: int


def change(product: ProductRow | None, message: Incoming) -> ProductRow | None:
    event = message.data
    if isinstance(event, ProductListed):
        return ProductRow(
            sku=event.sku,
            name=event.name,
            price=event.price.amount,
            currency=event.price.currency,
            available=event.stock,
            withdrawn=False,
            version=message.version,
        )
    if product is None:  # an order was for a product that was never listed
        return None
    match event:
        case StockReserved():
            product.available -= event.quantity
        case StockReleased() | StockReturned():
            product.available += event.quantity
        case StockCounted():
            product.available += event.difference
        case PriceChanged():
            product.price, product.currency = event.new_price.amount, event.new_price.currency
        case ProductRenamed():
            product.name = event.new_name
        case ProductWithdrawn():
            product.withdrawn = True
        case ProductRelisted():
            product.withdrawn = False
    return product


PRODUCTS = RowView(ProductRow, "products", lambda message: message.data.sku, change)
