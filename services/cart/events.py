"""What can happen to a cart. Each class has the fields of its newest schema in `schemas/cart`, in order."""

from dataclasses import dataclass

from shared.money import Money


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
    """Unix milliseconds. Only what a shopper does carries it: the fold needs it to know an idle cart."""


@dataclass(frozen=True, slots=True)
class ItemAdded:
    sku: str
    name: str
    quantity: int
    """How many were added, not how many the line has now."""
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
    """0 in the oldest events, which did not say."""


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
    """What was left in it; none in the oldest events, which did not say."""


Event = CartOpened | ItemAdded | QuantitySet | ItemRemoved | CartCheckedOut | CartAbandoned
