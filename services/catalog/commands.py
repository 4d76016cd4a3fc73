"""What may be asked of a product: the first two by an operator, the rest on behalf of an order."""

from dataclasses import dataclass

from shared.money import Money


@dataclass(frozen=True, slots=True)
class PutProduct:
    """How the product shall be. Said twice, it changes nothing the second time."""

    sku: str
    name: str
    price: Money
    stock: int
    """Pieces on hand: counted on the shelf, reserved ones included, sold ones not."""


@dataclass(frozen=True, slots=True)
class WithdrawProduct:
    sku: str


@dataclass(frozen=True, slots=True)
class ReserveStock:
    sku: str
    order_id: str
    quantity: int


@dataclass(frozen=True, slots=True)
class ReleaseStock:
    """The order will not be: what it holds or has bought goes back, and what it may still ask for is not given."""

    sku: str
    order_id: str
    had: int
    """Pieces that it is known to have had, reserved at least; 0 where it may have had none."""


@dataclass(frozen=True, slots=True)
class CommitStock:
    """The order is confirmed: what it holds is sold."""

    sku: str
    order_id: str


Command = PutProduct | WithdrawProduct | ReserveStock | ReleaseStock | CommitStock
