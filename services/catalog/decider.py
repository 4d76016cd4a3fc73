"""The rules of a product: its name, its price, and its stock, of which no piece is promised twice."""

import re
from dataclasses import dataclass

from services.catalog.commands import Command, CommitStock, PutProduct, ReleaseStock, ReserveStock, WithdrawProduct
from services.catalog.events import (
    Event,
    PriceChanged,
    ProductListed,
    ProductRelisted,
    ProductRenamed,
    ProductWithdrawn,
    StockCounted,
    StockRejected,
    StockReleased,
    StockReserved,
    StockReturned,
    StockSold,
)
from services.catalog.reservations import Bought, Held, Undone
from services.catalog.shelf import BARE, Shelf
from services.common.money import Money
from shared.errors import Refused

SKU = re.compile(r"[A-Z0-9]+(-[A-Z0-9]+)*")
CURRENCY = re.compile(r"[A-Z]{3}")
MAX_SKU = 40
MAX_NAME = 200
MAX_PRICE = 1_000_000_000
MAX_STOCK = 1_000_000_000


@dataclass(frozen=True, slots=True)
class Unlisted:
    """No product yet, though orders may have asked for it: the shelf remembers how each was answered."""

    shelf: Shelf


@dataclass(frozen=True, slots=True)
class Listed:
    sku: str
    name: str
    price: Money
    withdrawn: bool
    shelf: Shelf

    @property
    def available(self) -> int:
        return 0 if self.withdrawn else self.shelf.available


Stock = Unlisted | Listed

initial: Stock = Unlisted(BARE)


def decide(command: Command, stock: Stock) -> list[Event]:
    match command:
        case ReserveStock():
            return _reserve(command, stock)
        case CommitStock():
            return _commit(command, stock.shelf)
        case ReleaseStock():
            return _release(command, stock.shelf)
        case PutProduct():
            return _put(command, stock)
        case WithdrawProduct():
            return _withdraw(command, stock)


def evolve(stock: Stock, event: Event) -> Stock:
    match event:
        case StockReserved():
            return _with_shelf(stock, stock.shelf.reserve(event.order_id, event.quantity))
        case StockSold():
            return _with_shelf(stock, stock.shelf.sell(event.order_id, event.quantity))
        case StockReleased():
            return _with_shelf(stock, stock.shelf.release(event.order_id, event.quantity))
        case StockReturned():
            return _with_shelf(stock, stock.shelf.take_back(event.order_id, event.quantity))
        case StockRejected():
            return _with_shelf(stock, stock.shelf.release(event.order_id, 0))
        case StockCounted():
            return _with_shelf(stock, stock.shelf.supply(event.difference))
        case ProductListed():
            return Listed(event.sku, event.name, event.price, False, stock.shelf.supply(event.stock))
    match stock, event:
        case Listed(), PriceChanged():
            return Listed(stock.sku, stock.name, event.new_price, stock.withdrawn, stock.shelf)
        case Listed(), ProductRenamed():
            return Listed(stock.sku, event.new_name, stock.price, stock.withdrawn, stock.shelf)
        case Listed(), ProductWithdrawn():
            return Listed(stock.sku, stock.name, stock.price, True, stock.shelf)
        case Listed(), ProductRelisted():
            return Listed(stock.sku, stock.name, stock.price, False, stock.shelf)
        case _:
            raise ValueError(f"{type(event).__name__} cannot happen to a product that was never listed")


def _with_shelf(stock: Stock, shelf: Shelf) -> Stock:
    if isinstance(stock, Listed):
        return Listed(stock.sku, stock.name, stock.price, stock.withdrawn, shelf)
    return Unlisted(shelf)


def _reserve(command: ReserveStock, stock: Stock) -> list[Event]:
    sku, order_id, quantity = command.sku, command.order_id, command.quantity
    if quantity < 1:
        raise Refused("quantity-out-of-range", "At least one piece has to be reserved.")
    if stock.shelf.orders.of(order_id) is not None:
        return []
    available = stock.available if isinstance(stock, Listed) else 0
    if quantity > available:
        return [StockRejected(sku, order_id, quantity, available)]
    return [StockReserved(sku, order_id, quantity)]


def _commit(command: CommitStock, shelf: Shelf) -> list[Event]:
    match shelf.orders.of(command.order_id):
        case Held(pieces):
            return [StockSold(command.sku, command.order_id, pieces)]
        case Bought() | Undone():
            return []
        case None:  # if this were ignored, a reservation that arrives later would be held forever
            raise Refused("reservation-unknown", f"Order {command.order_id} has reserved no {command.sku}.")


def _release(command: ReleaseStock, shelf: Shelf) -> list[Event]:
    sku, order_id = command.sku, command.order_id
    match shelf.orders.of(order_id):
        case Held(pieces):
            return [StockReleased(sku, order_id, pieces)]
        case Bought(pieces):
            return [StockReturned(sku, order_id, pieces)]
        case Undone():
            return []
        case None if command.had:  # held pieces are never forgotten, so it bought them long ago
            return [StockReturned(sku, order_id, command.had)]
        case None:  # the release overtook the reservation, which is refused when it arrives
            return [StockReleased(sku, order_id, 0)]


def _put(command: PutProduct, stock: Stock) -> list[Event]:
    _check(command)
    if isinstance(stock, Unlisted):
        return [ProductListed(command.sku, command.name.strip(), command.price, command.stock)]
    if command.stock < stock.shelf.reserved:
        raise Refused(
            "stock-below-reserved",
            f"{stock.shelf.reserved} pieces of {stock.sku} are reserved for orders: fewer cannot be on hand.",
        )
    return _changes(command, stock)


def _changes(command: PutProduct, product: Listed) -> list[Event]:
    sku, name = command.sku, command.name.strip()
    changes: list[Event] = []
    if product.withdrawn:
        changes.append(ProductRelisted(sku))
    if name != product.name:
        changes.append(ProductRenamed(sku, product.name, name))
    if command.price != product.price:
        changes.append(PriceChanged(sku, product.price, command.price))
    if difference := command.stock - product.shelf.on_hand:
        changes.append(StockCounted(sku, difference, command.stock))
    return changes


def _withdraw(command: WithdrawProduct, stock: Stock) -> list[Event]:
    if isinstance(stock, Unlisted):
        raise Refused("product-unknown", f"There is no product {command.sku}.")
    return [] if stock.withdrawn else [ProductWithdrawn(command.sku)]


def _check(command: PutProduct) -> None:
    if len(command.sku) > MAX_SKU or not SKU.fullmatch(command.sku):
        raise Refused("sku-invalid", f"A SKU is up to {MAX_SKU} capitals and digits in groups, like MUG-350.")
    if not command.name.strip():
        raise Refused("name-empty", "A product needs a name.")
    if not command.name.strip().isprintable():  # for example a NUL, which no text column can hold
        raise Refused("name-unprintable", "A product's name is a single line without control characters.")
    if len(command.name) > MAX_NAME:
        raise Refused("name-too-long", f"A product's name has at most {MAX_NAME} characters.")
    if not CURRENCY.fullmatch(command.price.currency):
        raise Refused("currency-invalid", "A currency is the three capitals of ISO 4217, like EUR.")
    if not 1 <= command.price.amount <= MAX_PRICE:
        raise Refused("price-invalid", f"A price is 1 to {MAX_PRICE} minor units (cents).")
    if command.stock < 0:
        raise Refused("stock-negative", "There cannot be fewer than 0 pieces on hand.")
    if command.stock > MAX_STOCK:
        raise Refused("stock-too-large", f"There cannot be more than {MAX_STOCK} pieces on hand.")
