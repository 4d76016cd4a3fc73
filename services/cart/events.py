"""Events of a cart. Each class has the fields of its newest schema in `schemas/cart`, in the same order."""

from dataclasses import dataclass

from services.common.money import Money


@dataclass(frozen=True, slots=True)
class Line:
    sku: str
    name: str
    quantity: int
    unit_price: Money


@dataclass(frozen=True, slots=True)
class CartOpened:
    customer_id: str
    at: int
    """Unix milliseconds. Every event that a shopper causes carries it, because the fold finds idle carts by it."""


@dataclass(frozen=True, slots=True)
class ItemAdded:
    sku: str
    name: str
    quantity: int
    """Pieces added by this event, not the pieces that the line then has."""
    unit_price: Money
    at: int


@dataclass(frozen=True, slots=True)
class QuantitySet:
    sku: str
    quantity: int
    unit_price: Money
    at: int


@dataclass(frozen=True, slots=True)
class ItemRemoved:
    sku: str
    at: int
    pieces_removed: int
    """0 in events of the oldest schema, which lacked this field."""


@dataclass(frozen=True, slots=True)
class CartCheckedOut:
    order_id: str
    customer_id: str
    lines: tuple[Line, ...]
    total: Money
    payment_token: str
    shipping_method: str
    recipient: str


@dataclass(frozen=True, slots=True)
class CartAbandoned:
    idle_since: int
    lines: tuple[Line, ...]
    """The lines left in the cart; empty in events of the oldest schema, which lacked this field."""


Event = CartOpened | ItemAdded | QuantitySet | ItemRemoved | CartCheckedOut | CartAbandoned
