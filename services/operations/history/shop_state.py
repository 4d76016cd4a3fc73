"""Folds the whole shop as of a moment from a consistent cut: carts, orders, payments, money and stock."""

from collections import Counter
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, NamedTuple

from services.cart.decider import Open, total
from services.catalog.decider import Listed
from services.common.money import Money
from services.operations.history.cut import CutLog, Reach, find_cut, open_snapshot
from services.operations.history.fields import snake_case
from services.operations.reading.stores import Store, Stores
from services.order.decider import Cancelled
from services.order.events import OrderConfirmed, OrderPlaced
from services.payment.events import PaymentAuthorized, PaymentCaptured, PaymentRefunded, PaymentVoided

BEST_SELLERS = 5
EVENTS_PER_REPORT = 1000
MONEY_EVENTS: dict[type, tuple[str, Callable[[Any], Money]]] = {
    OrderPlaced: ("placed", lambda event: event.total),
    OrderConfirmed: ("confirmed", lambda event: event.total),
    PaymentAuthorized: ("authorised", lambda event: event.amount),
    PaymentCaptured: ("captured", lambda event: event.amount),
    PaymentVoided: ("voided", lambda event: event.amount),
    PaymentRefunded: ("refunded", lambda event: event.amount),
}
Counts = Counter[str]


class BestSeller(NamedTuple):
    sold: int
    sku: str
    name: str


@dataclass
class StockTotals:
    products: int = 0
    supplied: int = 0
    available: int = 0
    reserved: int = 0
    sold: int = 0
    movers: list[BestSeller] = field(default_factory=list)
    """The products that sold most, best first."""


@dataclass
class ShopState:
    at: datetime
    reached: dict[str, Reach] = field(default_factory=dict)
    """The extent of the cut by service."""
    carts: Counts = field(default_factory=Counter)
    in_open_carts: Counts = field(default_factory=Counter)
    """The worth of open carts: minor units by currency."""
    orders: Counts = field(default_factory=Counter)
    reasons: Counts = field(default_factory=Counter)
    """Why orders were cancelled."""
    payments: Counts = field(default_factory=Counter)
    money: dict[str, Counts] = field(default_factory=dict)
    """Minor units by currency and kind: the total ever placed, confirmed, authorised, captured, voided, refunded."""
    stock: StockTotals = field(default_factory=StockTotals)


async def fold_shop(stores: Stores, at: datetime, on_read: Callable[[int], None] = lambda _: None) -> ShopState:
    """Folds the whole shop as of a moment; `on_read` is called every thousand events with how many have been read."""
    shop, read, reported = ShopState(at), 0, 0
    async with open_snapshot(stores) as connection:
        cut = await find_cut(connection, stores.keys(), at)
        for store in stores.values():
            log = CutLog(store.service, connection, cut)
            async for state in _fold_states(store, log, shop):
                COUNT[store.decider.category](shop, state)
                if read + log.reach.events >= reported + EVENTS_PER_REPORT:
                    reported = read + log.reach.events
                    on_read(reported)
            read += log.reach.events
            shop.reached[store.service] = log.reach
    return shop


async def first_event_time(stores: Stores) -> datetime | None:
    """Returns the time of the shop's first event; None where nothing has happened yet."""
    times = [await store.pool.fetchval("SELECT min(time) FROM events") for store in stores.values()]
    return min((time for time in times if time), default=None)


async def _fold_states(store: Store, log: CutLog, shop: ShopState) -> AsyncIterator[Any]:
    """Yields the state of each stream in the cut, and adds the money its events moved to `shop`."""
    initial, evolve, decode = store.decider.initial, store.decider.evolve, store.decoder.decode
    current, state = "", initial
    async for stream_id, value in log.values():
        if stream_id != current:
            if current:
                yield state
            current, state = stream_id, initial
        event = await decode(value)
        state = evolve(state, event)
        if moved := MONEY_EVENTS.get(type(event)):
            name, amount_of = moved
            amount = amount_of(event)
            shop.money.setdefault(amount.currency, Counter())[name] += amount.amount
    if current:
        yield state


def _count_cart(shop: ShopState, cart: Any) -> None:
    shop.carts[snake_case(type(cart).__name__)] += 1
    if isinstance(cart, Open) and cart.lines:
        worth = total(cart.lines.values())
        shop.in_open_carts[worth.currency] += worth.amount


def _count_order(shop: ShopState, order: Any) -> None:
    shop.orders[snake_case(type(order).__name__)] += 1
    if isinstance(order, Cancelled):
        shop.reasons[order.reason] += 1


def _count_payment(shop: ShopState, payment: Any) -> None:
    shop.payments[snake_case(type(payment).__name__)] += 1


def _count_stock(shop: ShopState, product: Any) -> None:
    stock, shelf = shop.stock, product.shelf
    if isinstance(product, Listed):
        stock.products += 1
        if shelf.sold:
            sellers = [*stock.movers, BestSeller(shelf.sold, product.sku, product.name)]
            stock.movers = sorted(sellers, key=lambda it: (-it.sold, it.sku))[:BEST_SELLERS]
    stock.supplied += shelf.supplied
    stock.available += shelf.available
    stock.reserved += shelf.reserved
    stock.sold += shelf.sold


COUNT: dict[str, Callable[[ShopState, Any], None]] = {
    "cart": _count_cart,
    "order": _count_order,
    "payment": _count_payment,
    "stock": _count_stock,
}
