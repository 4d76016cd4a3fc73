"""The cart's own table of products, fed from `catalog.products`: it never asks the catalog."""

from sqlalchemy import BigInteger, Boolean, Column, Integer, MetaData, Text
from sqlmodel import Field, SQLModel

from shared.consumer import Incoming
from shared.views import RowView

VIEWS = MetaData()
CHANGED = "cart_products"
"""The channel on which a process hears which products have changed."""


class KnownProduct(SQLModel):
    sku: str = Field(sa_column=Column(Text, primary_key=True))
    name: str = Field(sa_column=Column(Text, nullable=False))
    price: int = Field(sa_column=Column(BigInteger, nullable=False))
    currency: str = Field(sa_column=Column(Text, nullable=False))
    withdrawn: bool = Field(sa_column=Column(Boolean, nullable=False))
    version: int = Field(sa_column=Column(Integer, nullable=False))


class KnownProductTable(KnownProduct, table=True):
    __tablename__ = "products"
    metadata = VIEWS


def change(_known: KnownProduct | None, message: Incoming) -> KnownProduct:
    latest = message.data
    return KnownProduct(
        sku=latest["sku"],
        name=latest["name"],
        price=latest["price"]["amount"],
        currency=latest["price"]["currency"],
        withdrawn=latest["withdrawn"],
        version=message.version,
    )


PRODUCTS = RowView(KnownProduct, KnownProductTable, lambda message: str(message.data["sku"]), change, notify=CHANGED)
