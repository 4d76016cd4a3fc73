"""The cart's own read model of products, fed from the topic `catalog.products`: the cart never calls the catalog."""

from sqlalchemy import BigInteger, Text
from sqlmodel import Field, SQLModel

from shared.messaging.incoming import Incoming
from shared.store.views import RowView

CHANGED = "cart_products"
"""The NOTIFY channel that names each product whose row has changed."""


class KnownProduct(SQLModel):
    sku: str = Field(sa_type=Text, primary_key=True)
    name: str = Field(sa_type=Text)
    price: int = Field(sa_type=BigInteger)
    currency: str = Field(sa_type=Text)
    withdrawn: bool
    version: int


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


PRODUCTS = RowView(KnownProduct, "products", lambda message: str(message.data["sku"]), change, notify=CHANGED)
