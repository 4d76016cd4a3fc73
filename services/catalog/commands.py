"""Commands to a product: the first two come from an operator, the others from the order saga."""

from dataclasses import dataclass

from services.common.money import Money


@dataclass(frozen=True, slots=True)
class PutProduct:
    """States what the product should be. Repeating the command changes nothing."""

    sku: str
    name: str
    price: Money
    stock: int
    """Pieces on hand as counted on the shelf: reserved ones are included, sold ones are not."""


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
    """The order was cancelled: returns what it holds or bought, and refuses a reservation that arrives later."""

    sku: str
    order_id: str
    had: int
    """Pieces that the order had reserved for certain; 0 if it may have had none."""


@dataclass(frozen=True, slots=True)
class CommitStock:
    """The order was confirmed: sells the pieces it holds."""

    sku: str
    order_id: str


Command = PutProduct | WithdrawProduct | ReserveStock | ReleaseStock | CommitStock
