"""The catalogue as shoppers browse it: one row a product, folded from its stream."""

from sqlalchemy import BigInteger, Boolean, Column, Integer, MetaData, Text
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
from shared.consumer import Incoming
from shared.views import RowView

VIEWS = MetaData()


class ProductRow(SQLModel):
    sku: str = Field(sa_column=Column(Text, primary_key=True))
    name: str = Field(sa_column=Column(Text, nullable=False))
    price: int = Field(sa_column=Column(BigInteger, nullable=False))
    currency: str = Field(sa_column=Column(Text, nullable=False))
    available: int = Field(sa_column=Column(Integer, nullable=False))
    withdrawn: bool = Field(sa_column=Column(Boolean, nullable=False))
    version: int = Field(sa_column=Column(Integer, nullable=False))


class ProductTable(ProductRow, table=True):
    __tablename__ = "products"
    metadata = VIEWS


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
    if product is None:  # an order asked for what was never listed
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


PRODUCTS = RowView(ProductRow, ProductTable, lambda message: message.data.sku, change)
