"""The vocabulary of the catalog's tests: a product, two orders, and short names for commands and events."""

from services.catalog import decider
from services.catalog.commands import CommitStock, PutProduct, ReleaseStock, ReserveStock, WithdrawProduct
from services.catalog.events import (
    ProductListed,
    ProductWithdrawn,
    StockRejected,
    StockReleased,
    StockReserved,
    StockReturned,
    StockSold,
)
from services.common.money import Money
from tests.unit.services.given import Scenario

given = Scenario(decider).given

MUG = "MUG-350"
FIRST = "6f2c0f4e-0000-5000-8000-000000000001"
SECOND = "6f2c0f4e-0000-5000-8000-000000000002"

PRICE = Money(1190, "EUR")
LISTED = ProductListed(MUG, "Enamel Mug", PRICE, 10)
WITHDRAWN = ProductWithdrawn(MUG)
WITHDRAW = WithdrawProduct(MUG)


def put(sku: str = MUG, name: str = "Enamel Mug", price: Money = PRICE, stock: int = 10) -> PutProduct:
    return PutProduct(sku, name, price, stock)


def reserve(order: str, quantity: int) -> ReserveStock:
    return ReserveStock(MUG, order, quantity)


def release(order: str, had: int = 0) -> ReleaseStock:
    return ReleaseStock(MUG, order, had)


def commit(order: str) -> CommitStock:
    return CommitStock(MUG, order)


def reserved(order: str, quantity: int) -> StockReserved:
    return StockReserved(MUG, order, quantity)


def rejected(order: str, quantity: int, available: int) -> StockRejected:
    return StockRejected(MUG, order, quantity, available)


def released(order: str, quantity: int) -> StockReleased:
    return StockReleased(MUG, order, quantity)


def sold(order: str, quantity: int) -> StockSold:
    return StockSold(MUG, order, quantity)


def returned(order: str, quantity: int) -> StockReturned:
    return StockReturned(MUG, order, quantity)
