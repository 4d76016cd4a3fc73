"""Makes events of the shop and sends them as the relay would: for tests of the lake, which knows only the topics."""

import asyncio
import random
import secrets
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import NAMESPACE_URL, UUID, uuid5

from uuid_utils import uuid7

from infra.settings import Settings
from services.cart import events as cart
from services.catalog import events as stock
from services.common.money import Money
from services.order import events as order
from services.payment import events as payment
from shared.envelope import Recorded, cloud_event_headers, millis
from shared.messaging.partitions import partition_of
from shared.schemas.codec import Codec
from shared.schemas.contract.event_schemas import load_schemas
from shared.schemas.registration import push
from shared.schemas.registry import Registry
from tests.integration.shared.topics import Record, send

TOPICS = {"cart": "cart.events", "order": "order.events", "payment": "payment.events", "stock": "stock.events"}
PARTITIONS = 6
NOON = datetime(2026, 3, 2, 12, tzinfo=UTC)
TYPES = [t for module in (cart, order, payment, stock) for t in module.Event.__args__]


@dataclass(frozen=True)
class ShopEvent:
    """An event with its place in a stream."""

    stream_id: str
    version: int
    event: Any
    at: datetime
    event_id: str
    actor: str = "customer:ann"
    kafka_time: datetime | None = None
    """Timestamp in Kafka; by default the time of the event."""

    @property
    def topic(self) -> str:
        return TOPICS[self.stream_id.partition(":")[0]]


class Press:
    """Encodes events as the services would, with the schema ids of this registry, and sends them."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._codec = Codec()
        self.ids = asyncio.run(_registered(settings))
        """Schema ids by record and version: `tillroll.cart.ItemAdded.v1`."""
        schemas = load_schemas()
        newest = {schema.type: schema for topic in TOPICS.values() for schema in schemas.newest_of_topic(topic)}
        for event_type in TYPES:
            schema = newest[event_type.__name__]
            self._codec.bind(event_type, schema, self.ids[f"{schema.record}.v{schema.version}"])

    def record(self, one: ShopEvent) -> Record:
        recorded = Recorded(
            one.stream_id, one.version, one.event_id, type(one.event).__name__, one.at,
            "request-1", "request-1", one.actor, "", self._codec.encode(one.event),
        )  # fmt: skip
        return Record(
            partition=partition_of(one.stream_id, PARTITIONS),
            offset=0,
            key=one.stream_id.encode(),
            value=recorded.value,
            headers=tuple(cloud_event_headers(recorded, "/tests")),
            timestamp=millis(one.kafka_time or one.at),
        )

    def send(self, events: Iterable[ShopEvent]) -> None:
        by_topic: dict[str, list[Record]] = {}
        for shop_event in events:
            by_topic.setdefault(shop_event.topic, []).append(self.record(shop_event))
        for topic, records in by_topic.items():
            send(self._settings, topic, records)


async def _registered(settings: Settings) -> dict[str, int]:
    async with Registry(settings) as registry:
        return await push(registry, load_schemas())


def event_id(at: datetime) -> str:
    """Makes a UUIDv7 of a moment, as a service would have at that time."""
    return str(UUID(int=(millis(at) << 80) | (7 << 76) | (2 << 62) | secrets.randbits(62)))


def numbered(happened: Iterable[tuple[datetime, str, Any]]) -> list[ShopEvent]:
    """Orders (time, stream, event) by time and gives each event its version in the stream."""
    versions: dict[str, int] = {}
    shop_events = []
    for at, stream_id, event in sorted(happened, key=lambda one: one[0]):
        versions[stream_id] = versions.get(stream_id, 0) + 1
        shop_events.append(ShopEvent(stream_id, versions[stream_id], event, at, event_id(at)))
    return shop_events


def shopping(carts: int, start: datetime = NOON, seed: int = 7, every: float = 7) -> list[ShopEvent]:
    """Makes a small day of a shop: carts filled, some abandoned, most bought; a few payments declined or held.

    The same seed makes the same story with other carts and products. A new cart is opened `every` so many seconds.
    """
    chance = random.Random(seed)
    run = uuid7().hex[-10:]
    prices = {f"MUG-{run}-{n}": Money(1000 + 100 * n, "EUR") for n in range(5)}
    happened: list[tuple[datetime, str, Any]] = [
        (start, f"stock:{sku}", stock.ProductListed(sku, f"Mug {sku}", price, 10_000)) for sku, price in prices.items()
    ]
    for n in range(carts):
        happened += _one_cart(f"{run}-{n}", chance, prices, start + timedelta(seconds=60 + every * n))
    return numbered(happened)


def _one_cart(name: str, chance: random.Random, prices: dict[str, Money], at: datetime) -> Iterator[Any]:
    cart_id, customer = str(uuid5(NAMESPACE_URL, f"cart {name}")), f"customer-{name[:10]}-{chance.randrange(8)}"

    def later(seconds: float) -> datetime:
        nonlocal at
        at += timedelta(seconds=seconds)
        return at

    yield at, f"cart:{cart_id}", cart.CartOpened(customer, millis(at))
    lines = []
    for sku in chance.sample(sorted(prices), chance.randint(1, 3)):
        lines.append((sku, f"Mug {sku}", chance.randint(1, 4), prices[sku]))
        yield later(5), f"cart:{cart_id}", cart.ItemAdded(*lines[-1], millis(at))
    if chance.random() < 0.2:
        left = tuple(cart.Line(*line) for line in lines)
        yield later(3600), f"cart:{cart_id}", cart.CartAbandoned(millis(at) - 3_600_000, left)
        return
    yield from _bought(cart_id, customer, lines, chance, later)


def _bought(
    cart_id: str, customer: str, lines: list[Any], chance: random.Random, later: Callable[[float], datetime]
) -> Iterator[Any]:
    order_id, payment_id = str(uuid5(NAMESPACE_URL, cart_id)), str(uuid5(NAMESPACE_URL, f"{cart_id} paid"))
    total = Money(sum(price.amount * quantity for _, _, quantity, price in lines), "EUR")
    token = chance.choice(["tok_ok", "tok_ok", "tok_ok", "tok_declined"])
    bought = tuple(order.Line(*line) for line in lines)
    carted = tuple(cart.Line(*line) for line in lines)
    placed, paid = f"order:{order_id}", f"payment:{payment_id}"
    yield (
        later(9),
        f"cart:{cart_id}",
        cart.CartCheckedOut(order_id, customer, carted, total, token, "express", "sealed"),
    )
    at = later(0.1)
    yield (
        at,
        placed,
        order.OrderPlaced(order_id, cart_id, customer, bought, total, token, "express", "sealed", millis(at)),
    )
    for sku, _, quantity, _ in lines:
        yield later(0.01), f"stock:{sku}", stock.StockReserved(sku, order_id, quantity)
        yield later(0.01), placed, order.LineReserved(order_id, sku)
    yield later(0.01), placed, order.PaymentRequested(order_id, payment_id, customer, total, token)
    yield later(0.01), paid, payment.AuthorizationRequested(payment_id, order_id, customer, total, token)
    if token == "tok_declined":
        yield (
            later(0.5),
            paid,
            payment.PaymentDeclined(payment_id, order_id, customer, total, token, "provider", ("card declined",)),
        )
        yield later(0.01), placed, order.OrderCancelled(order_id, payment_id, customer, "payment_declined", bought)
        for sku, _, quantity, _ in lines:
            yield later(0.01), f"stock:{sku}", stock.StockReleased(sku, order_id, quantity)
        return
    yield later(0.5), paid, payment.PaymentAuthorized(payment_id, order_id, customer, total, "psp_1")
    yield later(0.01), placed, order.OrderConfirmed(order_id, payment_id, customer, bought, total)
    for sku, _, quantity, _ in lines:
        yield later(0.01), f"stock:{sku}", stock.StockSold(sku, order_id, quantity)
    yield later(0.01), paid, payment.CaptureRequested(payment_id, order_id)
    yield later(0.3), paid, payment.PaymentCaptured(payment_id, order_id, customer, total, "psp_1")
