"""The rules of a cart. A line keeps the price of its last change; checkout refuses if the price has changed since."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import reduce
from operator import add

from services.cart.commands import AbandonCart, AddItem, CheckOut, Command, OpenCart, Product, RemoveItem, SetQuantity
from services.cart.events import (
    CartAbandoned,
    CartCheckedOut,
    CartOpened,
    Event,
    ItemAdded,
    ItemRemoved,
    Line,
    QuantitySet,
)
from services.common.fields import carry
from services.common.money import Money
from shared.errors import Refused

MAX_QUANTITY = 99
MAX_LINES = 50


@dataclass(frozen=True, slots=True)
class Empty:
    """The cart has not been opened yet."""


@dataclass(frozen=True, slots=True)
class Open:
    customer_id: str
    lines: Mapping[str, Line]
    active_at: int
    """When the shopper last changed it, in unix milliseconds."""


@dataclass(frozen=True, slots=True)
class CheckedOut:
    customer_id: str
    lines: Mapping[str, Line]
    order_id: str


@dataclass(frozen=True, slots=True)
class Abandoned:
    customer_id: str
    lines: Mapping[str, Line]


Cart = Empty | Open | CheckedOut | Abandoned

initial: Cart = Empty()


def decide(command: Command, cart: Cart) -> list[Event]:
    match command, cart:
        case AbandonCart(), Open() if command.now >= cart.active_at + command.idle_ms:
            return [CartAbandoned(cart.active_at, tuple(cart.lines.values()))]
        case AbandonCart(), _:
            return []  # the shopper was faster than the deadline
        case OpenCart(), Empty():
            return [CartOpened(command.customer_id, command.now)]
        case _, Empty():
            raise Refused("cart-unknown", "There is no such cart.")
        case _ if command.customer_id != cart.customer_id:
            raise Refused("cart-unknown", "There is no such cart.")  # a stranger must not learn that it exists
        case _, CheckedOut():
            raise Refused("cart-checked-out", "This cart has been checked out. Open a new one to go on shopping.")
        case _, Abandoned():
            raise Refused("cart-abandoned", "This cart was left alone for too long. Open a new one to go on shopping.")
        case OpenCart(), Open():
            raise Refused("cart-open", "This cart is open already.")
        case AddItem(), Open():
            return _add_item(command, cart)
        case SetQuantity(), Open():
            return _set_quantity(command, cart)
        case RemoveItem(), Open():
            line = _line(cart, command.sku)
            return [ItemRemoved(line.sku, command.now, line.quantity)]
        case CheckOut(), Open():
            return _check_out(command, cart)


def evolve(cart: Cart, event: Event) -> Cart:
    match cart, event:
        case Open(), ItemAdded():
            held = cart.lines.get(event.sku)
            quantity = event.quantity + held.quantity if held else event.quantity
            return _with_line(cart, Line(event.sku, event.name, quantity, event.unit_price), event.at)
        case Open(), QuantitySet():
            name = cart.lines[event.sku].name
            return _with_line(cart, Line(event.sku, name, event.quantity, event.unit_price), event.at)
        case Open(), ItemRemoved():
            lines = {sku: line for sku, line in cart.lines.items() if sku != event.sku}
            return Open(cart.customer_id, lines, max(cart.active_at, event.at))
        case Empty(), CartOpened():
            return Open(event.customer_id, {}, event.at)
        case Open(), CartCheckedOut():
            return CheckedOut(cart.customer_id, cart.lines, event.order_id)
        case Open(), CartAbandoned():
            return Abandoned(cart.customer_id, cart.lines)
        case _:
            raise ValueError(f"{type(event).__name__} cannot follow in a cart that is {type(cart).__name__}")


def total(lines: Iterable[Line]) -> Money:
    """Sums up the lines. There must be at least one, or the currency would be unknown."""
    return reduce(add, (line.unit_price.times(line.quantity) for line in lines))


def abandon_due(cart: Cart, idle_ms: int) -> int | None:
    """Returns when (unix ms) `AbandonCart` will take effect if nothing else happens, or None for a closed cart."""
    return cart.active_at + idle_ms if isinstance(cart, Open) else None


def _add_item(command: AddItem, cart: Open) -> list[Event]:
    product = _on_sale(command.sku, command.product)
    held = cart.lines.get(command.sku)
    _check_quantity(command.quantity, already=held.quantity if held else 0)
    if not held and len(cart.lines) >= MAX_LINES:
        raise Refused("cart-full", f"A cart holds at most {MAX_LINES} different products. Remove one first.")
    _check_currency(cart, command.sku, product.price)
    return [ItemAdded(command.sku, product.name, command.quantity, product.price, command.now)]


def _set_quantity(command: SetQuantity, cart: Open) -> list[Event]:
    line = _line(cart, command.sku)
    product = _on_sale(command.sku, command.product)
    _check_quantity(command.quantity)
    _check_currency(cart, command.sku, product.price)
    if (command.quantity, product.price) == (line.quantity, line.unit_price):
        return []
    return [QuantitySet(command.sku, command.quantity, product.price, command.now)]


def _check_out(command: CheckOut, cart: Open) -> list[Event]:
    if not cart.lines:
        raise Refused("cart-empty", "An empty cart cannot be checked out.")
    lines = tuple(cart.lines.values())
    _check_prices((line, _on_sale(line.sku, command.products.get(line.sku))) for line in lines)
    return [carry(CartCheckedOut, command, customer_id=cart.customer_id, lines=lines, total=total(lines))]


def _with_line(cart: Open, line: Line, at: int) -> Open:
    # Copies at most MAX_LINES lines. `active_at` never goes back, because the clocks of two servers may disagree.
    return Open(cart.customer_id, {**cart.lines, line.sku: line}, max(cart.active_at, at))


def _line(cart: Open, sku: str) -> Line:
    if line := cart.lines.get(sku):
        return line
    raise Refused("line-unknown", f"{sku} is not in this cart.")


def _on_sale(sku: str, product: Product | None) -> Product:
    if product is None:
        raise Refused("product-unknown", f"There is no product {sku}.")
    if product.withdrawn:
        raise Refused("product-withdrawn", f"{product.name} ({sku}) is no longer sold.")
    return product


def _check_quantity(quantity: int, already: int = 0) -> None:
    if quantity < 1 or quantity + already > MAX_QUANTITY:
        has = f"; the cart has {already} already" if already else ""
        raise Refused("quantity-out-of-range", f"One can buy 1 to {MAX_QUANTITY} pieces of a product{has}.")


def _check_currency(cart: Open, sku: str, price: Money) -> None:
    other = next((line for line in cart.lines.values() if line.sku != sku), None)
    if other and other.unit_price.currency != price.currency:
        raise Refused(
            "currency-mixed",
            f"{sku} is sold in {price.currency}, the rest of this cart in {other.unit_price.currency}.",
        )


def _check_prices(sold: Iterable[tuple[Line, Product]]) -> None:
    changed = [
        f"{p.name} ({line.sku}) costs {p.price}, no longer {line.unit_price}."
        for line, p in sold
        if p.price != line.unit_price
    ]
    if changed:
        raise Refused(
            "price-changed",
            " ".join([*changed, "Set the quantity again to take the new price, or remove it."]),
        )
