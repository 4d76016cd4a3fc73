"""Writes a shop with a long history straight into its stores, topics and the provider's ledger, all consistent.

Every order is one of two products, paid and confirmed: 18 events in four services.
"""

import asyncio
import sqlite3
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, NamedTuple
from uuid import UUID

import asyncpg
from uuid_utils import uuid7

from infra.local.servers.postgres import ROLE
from infra.local.stack import up
from infra.local.throwaway import settings_of, throwaway
from infra.settings import Settings
from services.cart.events import CartCheckedOut, CartOpened, ItemAdded, Line, QuantitySet
from services.catalog.events import ProductListed, StockReserved, StockSold
from services.common.money import Money
from services.operations.verify.consumer_lag import list_consumers
from services.order.decider import payment_of
from services.order.events import Line as OrderLine
from services.order.events import LineReserved, OrderConfirmed, OrderPlaced, PaymentRequested
from services.payment.events import AuthorizationRequested, CaptureRequested, PaymentAuthorized, PaymentCaptured
from services.psp.ledger import Ledger
from services.shop.services import shop_services
from shared.envelope import millis
from shared.messaging.topic_reader import open_reader
from shared.recovery.republish import republish
from shared.schemas.codec import Codec
from shared.schemas.contract.event_schemas import load_schemas
from shared.schemas.registration import push
from shared.schemas.registry import Registry
from shared.schemas.service_schemas import ServiceSchemas
from shared.service import Service, migrate_service
from shared.store.database import Pool, open_pool
from shared.store.tables import KERNEL

PER_ORDER = 18
PRODUCTS = 200
CHUNK = 2_000
PRICE, CUSTOMER, TOKEN = Money(1290, "EUR"), "0190b1de-0000-7000-8000-000000000001", "tok_ok"
RECIPIENT = "x" * 120
"""A text as long as an encrypted name and address."""
BEGAN = datetime(2026, 1, 1, tzinfo=UTC)
COLUMNS = [column.name for column in KERNEL.tables["events"].columns if column.name != "position"]


class Written(NamedTuple):
    service: Service
    pool: Pool
    codec: Codec


class History:
    def __init__(self, settings: Settings, stores: dict[str, Written]) -> None:
        self.settings = settings
        self.stores = stores
        self._versions = dict.fromkeys((f"stock:{sku(n)}" for n in range(PRODUCTS)), 1)
        self._now = BEGAN

    async def write(self, orders: int) -> None:
        await self._add(_listed())
        for start in range(0, orders, CHUNK):
            count = min(CHUNK, orders - start)
            await self._add(row for n in range(start, start + count) for row in self._order(n))
        for written in self.stores.values():
            await written.pool.execute("VACUUM ANALYZE events", timeout=600)

    async def write_orders_alone(self, events: int) -> None:
        """Writes orders without carts, stock and payments, until the store of orders has so many events."""
        there = await self.stores["order"].pool.fetchval("SELECT count(*) FROM events", timeout=600)
        for start in range(0, max(0, events - there) // 5, CHUNK):
            await self._add(row for n in range(start, start + CHUNK) for row in self._order(n) if row[0] == "order")
        await self.stores["order"].pool.execute("VACUUM ANALYZE events", timeout=600)

    async def _add(self, rows: "Iterator[tuple[str, str, int, Any]]") -> None:
        by_service: dict[str, list[tuple[Any, ...]]] = {name: [] for name in self.stores}
        correlation = str(uuid7())
        for service, stream, version, event in rows:
            self._now += timedelta(microseconds=200)
            value = self.stores[service].codec.encode(event)
            envelope = (
                UUID(bytes=uuid7().bytes),
                type(event).__name__,
                self._now,
                correlation,
                correlation,
                CUSTOMER,
                "",
            )
            by_service[service].append((stream, version, *envelope, value))
        for name, recorded in by_service.items():
            await self.stores[name].pool.copy_records_to_table("events", records=recorded, columns=COLUMNS)

    def _order(self, n: int) -> Iterator[tuple[str, str, int, Any]]:
        cart_id, order_id, at = str(uuid7()), str(uuid7()), millis(self._now)
        payment_id, total = payment_of(order_id), PRICE.times(3)
        skus = [sku(n), sku(n + 7)]
        lines = (Line(skus[0], "Enamel mug", 2, PRICE), Line(skus[1], "Enamel mug", 1, PRICE))
        cart = [
            CartOpened(CUSTOMER, at),
            *(ItemAdded(it, "Enamel mug", 1, PRICE, at) for it in skus),
            QuantitySet(skus[0], 2, PRICE, at),
            CartCheckedOut(order_id, CUSTOMER, lines, total, TOKEN, "standard", RECIPIENT),
        ]
        order_lines = tuple(OrderLine(line.sku, line.name, line.quantity, line.unit_price) for line in lines)
        order = [
            OrderPlaced(order_id, cart_id, CUSTOMER, order_lines, total, TOKEN, "standard", RECIPIENT, at),
            *(LineReserved(order_id, it) for it in skus),
            PaymentRequested(order_id, payment_id, CUSTOMER, total, TOKEN),
            OrderConfirmed(order_id, payment_id, CUSTOMER, order_lines, total),
        ]
        payment = [
            AuthorizationRequested(payment_id, order_id, CUSTOMER, total, TOKEN),
            PaymentAuthorized(payment_id, order_id, CUSTOMER, total, f"psp-{2 * n + 1}"),
            CaptureRequested(payment_id, order_id),
            PaymentCaptured(payment_id, order_id, CUSTOMER, total, f"psp-{2 * n + 2}"),
        ]
        for service, stream, events in (
            ("cart", f"cart:{cart_id}", cart),
            ("order", f"order:{order_id}", order),
            ("payment", f"payment:{payment_id}", payment),
        ):
            for version, event in enumerate(events, 1):
                yield service, stream, version, event
        for line in lines:
            for moved in (StockReserved, StockSold):
                stream = f"stock:{line.sku}"
                self._versions[stream] += 1
                yield "catalog", stream, self._versions[stream], moved(line.sku, order_id, line.quantity)

    async def checkpoint(self) -> None:
        """Makes the server recycle segments of its log, as in a shop that was not written within a minute."""
        url = self.settings.database_url.get_secret_value().replace(f"//{ROLE}:", "//postgres:", 1)
        connection = await asyncpg.connect(url)
        try:
            await connection.execute("CHECKPOINT", timeout=600)
        finally:
            await connection.close()

    async def publish(self) -> None:
        for written in self.stores.values():
            service = written.service
            await republish(written.pool, self.settings, service.name, service.decider.topic, service.source)

    async def mark_as_consumed(self) -> None:
        """Moves all consumers to the ends of their topics, so that only later events are measured."""
        for written in self.stores.values():
            for consumer, topics in list_consumers(written.service):
                for topic in topics:
                    async with open_reader(self.settings, topic) as reader:
                        ends = await reader.ends()
                    await written.pool.executemany(
                        "INSERT INTO offsets VALUES ($1, $2, $3, $4)",
                        [(consumer, *at, end) for at, end in ends.items()],
                    )

    async def enter_movements(self) -> None:
        book = self.settings.home / "psp" / "ledger.sqlite"
        with Ledger(book):
            pass  # creates the tables
        payments = await self.stores["payment"].pool.fetch(
            "SELECT substr(stream_id, 9) FROM events WHERE version = 1 ORDER BY position", timeout=600
        )
        _enter(book, [row[0] for row in payments])


def sku(n: int) -> str:
    return f"BENCH-{n % PRODUCTS}"


def _listed() -> Iterator[tuple[str, str, int, Any]]:
    for n in range(PRODUCTS):
        yield "catalog", f"stock:{sku(n)}", 1, ProductListed(sku(n), "Enamel mug", PRICE, 10_000_000)


def _enter(book: Path, payments: Sequence[str]) -> None:
    total = PRICE.times(3)
    with sqlite3.connect(book) as connection:
        connection.executemany(
            "INSERT INTO movements VALUES (NULL, ?, ?, ?, ?, ?, ?, '')",
            [
                (payment, BEGAN.isoformat(), kind, total.amount, total.currency, TOKEN)
                for payment in payments
                for kind in ("authorized", "captured")
            ],
        )


@asynccontextmanager
async def history(events: int) -> AsyncIterator[History]:
    """Writes the history into a stack of its own, because the events of other benches are not consistent."""
    with throwaway() as environment:
        # In a loop of its own: uvloop's cannot write to a process that has read enough.
        stack = await asyncio.to_thread(asyncio.run, up(settings_of(environment), servers_only=True))
        settings = stack.settings
        async with AsyncExitStack() as opened:
            registry = await opened.enter_async_context(Registry(settings))
            await push(registry, load_schemas())
            stores = {}
            for service in shop_services(settings):
                await migrate_service(service, settings)
                pool = await opened.enter_async_context(await open_pool(settings, service.name, 2))
                codec = Codec()
                service_schemas = ServiceSchemas(pool, registry, load_schemas(), codec)
                await service_schemas.bind(service.decider.topic, service.decider.events)
                stores[service.name] = Written(service, pool, codec)
            written = History(settings, stores)
            await written.write(events // PER_ORDER)
            await written.publish()
            await written.mark_as_consumed()
            await written.enter_movements()
            yield written
