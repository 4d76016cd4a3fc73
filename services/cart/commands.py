"""What may be asked of a cart. All that a decision needs (time, ids, products) comes with the asking."""

from collections.abc import Mapping
from dataclasses import dataclass

from shared.money import Money


@dataclass(frozen=True, slots=True)
class Product:
    """A product as the shop sells it at the moment of the command."""

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
    """None: the shop knows no product of that SKU."""
    now: int


@dataclass(frozen=True, slots=True)
class SetQuantity:
    """Also how a shopper takes a price that has changed."""

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
    """By SKU, those of the cart's lines that the shop knows."""
    payment_token: str
    shipping_method: str
    recipient: str
    """Name and address, already sealed with the customer's key."""


@dataclass(frozen=True, slots=True)
class AbandonCart:
    """Asked by the deadline, not by the shopper."""

    idle_ms: int
    now: int


Command = OpenCart | AddItem | SetQuantity | RemoveItem | CheckOut | AbandonCart
