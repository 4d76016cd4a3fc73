"""The whole shop at a moment: carts, orders, payments, money and stock, folded from the cut one stream at a time."""

from collections import Counter
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, NamedTuple

from services.cart.decider import Open, total
from services.catalog.decider import Listed
from services.order.decider import Cancelled
from services.order.events import OrderConfirmed, OrderPlaced
from services.payment.events import PaymentAuthorized, PaymentCaptured, PaymentRefunded, PaymentVoided
from services.replay.cut import Reach, Slice, cut_at, one_view
from services.replay.portrait import in_words
from services.replay.rolls import CATEGORIES, Roll, Rolls
from shared.money import Money

MOVERS = 5
TELL_EVERY = 1000
DEEDS: dict[type, tuple[str, Callable[[Any], Money]]] = {
    OrderPlaced: ("placed", lambda event: event.total),
    OrderConfirmed: ("confirmed", lambda event: event.total),
    PaymentAuthorized: ("authorised", lambda event: event.amount),
    PaymentCaptured: ("captured", lambda event: event.amount),
    PaymentVoided: ("voided", lambda event: event.amount),
    PaymentRefunded: ("refunded", lambda event: event.amount),
}
Counted = Counter[str]


class Mover(NamedTuple):
    sold: int
    sku: str
    name: str


@dataclass
class Stock:
    products: int = 0
    supplied: int = 0
    available: int = 0
    reserved: int = 0
    sold: int = 0
    movers: list[Mover] = field(default_factory=list)
    """Those that sold most, the first first."""


@dataclass
class Shop:
    at: datetime
    reached: dict[str, Reach] = field(default_factory=dict)
    """By service."""
    carts: Counted = field(default_factory=Counter)
    in_open_carts: Counted = field(default_factory=Counter)
    """Minor units by currency."""
    orders: Counted = field(default_factory=Counter)
    reasons: Counted = field(default_factory=Counter)
    """Of cancelled orders."""
    payments: Counted = field(default_factory=Counter)
    money: dict[str, Counted] = field(default_factory=dict)
    """By currency and deed, minor units: all that was ever placed, authorised, and so on."""
    stock: Stock = field(default_factory=Stock)


async def shop_at(rolls: Rolls, at: datetime, looked_at: Callable[[int], None] = lambda _: None) -> Shop:
    """`looked_at` is told every now and then how many events have been read."""
    shop, read, told = Shop(at), 0, 0
    async with one_view(rolls) as connection:
        cut = await cut_at(connection, at)
        for category in CATEGORIES:
            part = Slice(category, connection, cut)
            async for state in _folded(rolls[category], part, shop):
                COUNT[category](shop, state)
                if read + part.reach.events >= told + TELL_EVERY:
                    told = read + part.reach.events
                    looked_at(told)
            read += part.reach.events
            shop.reached[CATEGORIES[category].service] = part.reach
    return shop


async def beginning(rolls: Rolls) -> datetime | None:
    """Of the first event of all; None where nothing has happened yet."""
    times = [await roll.pool.fetchval("SELECT min(time) FROM events") for roll in rolls.values()]
    return min((time for time in times if time), default=None)


async def _folded(roll: Roll, part: Slice, shop: Shop) -> AsyncIterator[Any]:
    """The state of each stream in the cut."""
    initial, evolve, decode = roll.decider.initial, roll.decider.evolve, roll.memory.decode
    current, state = "", initial
    async for stream_id, value in part.values():
        if stream_id != current:
            if current:
                yield state
            current, state = stream_id, initial
        event = await decode(value)
        state = evolve(state, event)
        if deed := DEEDS.get(type(event)):
            name, amount_of = deed
            amount = amount_of(event)
            shop.money.setdefault(amount.currency, Counter())[name] += amount.amount
    if current:
        yield state


def _count_cart(shop: Shop, cart: Any) -> None:
    shop.carts[in_words(type(cart).__name__)] += 1
    if isinstance(cart, Open) and cart.lines:
        worth = total(cart.lines.values())
        shop.in_open_carts[worth.currency] += worth.amount


def _count_order(shop: Shop, order: Any) -> None:
    shop.orders[in_words(type(order).__name__)] += 1
    if isinstance(order, Cancelled):
        shop.reasons[order.reason] += 1


def _count_payment(shop: Shop, payment: Any) -> None:
    shop.payments[in_words(type(payment).__name__)] += 1


def _count_stock(shop: Shop, product: Any) -> None:
    stock, shelf = shop.stock, product.shelf
    if isinstance(product, Listed):
        stock.products += 1
        if shelf.sold:
            most = [*stock.movers, Mover(shelf.sold, product.sku, product.name)]
            stock.movers = sorted(most, key=lambda mover: (-mover.sold, mover.sku))[:MOVERS]
    stock.supplied += shelf.supplied
    stock.available += shelf.available
    stock.reserved += shelf.reserved
    stock.sold += shelf.sold


COUNT: dict[str, Callable[[Shop, Any], None]] = {
    "cart": _count_cart,
    "order": _count_order,
    "payment": _count_payment,
    "stock": _count_stock,
}
