"""Commands to a cart. Each carries all that its decision needs: the time, ids and products."""

from collections.abc import Mapping
from dataclasses import dataclass

from services.common.money import Money


@dataclass(frozen=True, slots=True)
class Product:
    """A product as the shop sells it when the command is made."""

    name: str
    price: Money
    withdrawn: bool = False


@dataclass(frozen=True, slots=True)
class OpenCart:
    customer_id: str
    now: int
    """Unix milliseconds, here and in the other commands."""


@dataclass(frozen=True, slots=True)
class AddItem:
    customer_id: str
    sku: str
    quantity: int
    product: Product | None
    """The product with this SKU, or None if the shop has none."""
    now: int


@dataclass(frozen=True, slots=True)
class SetQuantity:
    """Sets the quantity of a line at the current price; this is also how a shopper accepts a changed price."""

    customer_id: str
    sku: str
    quantity: int
    product: Product | None
    now: int


@dataclass(frozen=True, slots=True)
class RemoveItem:
    customer_id: str
    sku: str
    now: int


@dataclass(frozen=True, slots=True)
class CheckOut:
    customer_id: str
    order_id: str
    products: Mapping[str, Product]
    """The products of the cart's lines by SKU, without those that the shop does not have."""
    payment_token: str
    shipping_method: str
    recipient: str
    """Name and address, already encrypted with the customer's key."""


@dataclass(frozen=True, slots=True)
class AbandonCart:
    """Closes an idle cart. The deadline sends it, never the shopper."""

    idle_ms: int
    now: int


Command = OpenCart | AddItem | SetQuantity | RemoveItem | CheckOut | AbandonCart
