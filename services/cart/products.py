"""The cart's products by SKU, from the view in its own database, with a cache in front that NOTIFY keeps valid."""

import asyncio
import logging
from collections.abc import AsyncIterator, Iterable, Mapping
from contextlib import asynccontextmanager

from services.cart.commands import Product
from services.cart.views import CHANGED, PRODUCTS
from services.common.money import Money
from shared.cancellation import heed_cancellation
from shared.store.database import CONNECTION_ERRORS, Connection, Pool, listening

log = logging.getLogger(__name__)

RETRY_SECONDS = 0.5


class ProductCache:
    """Products and their versions. It is empty, and stays so, while it is not notified of changes."""

    def __init__(self) -> None:
        self._found: dict[str, tuple[Product, int]] = {}
        self._is_listening = False
        self.changes = 0
        """Counts notifications: a row that was read before a change must not be cached after it."""

    def get(self, sku: str) -> Product | None:
        found = self._found.get(sku)
        return found[0] if found else None

    def put(self, found: Mapping[str, tuple[Product, int]], read_at_change: int) -> None:
        if self._is_listening and read_at_change == self.changes:
            self._found.update(found)

    def forget_older(self, sku: str, version: int) -> None:
        """Forgets a product if the table is ahead of its notification."""
        if sku in self._found and self._found[sku][1] < version:
            del self._found[sku]

    async def follow(self, pool: Pool) -> None:
        """Forgets each product that changes, until cancelled."""
        while True:
            heed_cancellation()
            try:
                async with (
                    pool.acquire() as connection,
                    listening(connection, CHANGED, self._changed),
                    self._filling(connection) as connection_lost,
                ):
                    await connection_lost.wait()
            except CONNECTION_ERRORS as error:
                log.warning("product changes cannot be followed; trying again", extra={"error": repr(error)})
            await asyncio.sleep(RETRY_SECONDS)

    @asynccontextmanager
    async def _filling(self, connection: Connection) -> AsyncIterator[asyncio.Event]:
        """Lets the cache fill within the block; yields an event that is set when the connection is lost."""
        lost = asyncio.Event()
        connection.add_termination_listener(lambda *_: lost.set())
        self.changes += 1
        self._is_listening = True
        try:
            yield lost
        finally:
            self._is_listening = False
            self._found.clear()

    def _changed(self, _connection: object, _pid: int, _channel: str, sku: object) -> None:
        self.changes += 1
        self._found.pop(str(sku), None)


class Products:
    """Finds products by SKU, in the cache or else in the table."""

    def __init__(self, pool: Pool, cache: ProductCache) -> None:
        self._pool = pool
        self._cache = cache

    async def find(self, sku: str) -> Product | None:
        return self._cache.get(sku) or (await self._read([sku])).get(sku)

    async def find_all(self, skus: Iterable[str]) -> dict[str, Product]:
        wanted = set(skus)
        cached = {sku: product for sku in wanted if (product := self._cache.get(sku))}
        return cached | await self._read(wanted - cached.keys())

    async def version(self, sku: str) -> int:
        """The version of the product's stream that the table shows; 0 for an unknown product."""
        version: int = await self._pool.fetchval("SELECT version FROM products WHERE sku = $1", sku) or 0
        self._cache.forget_older(sku, version)
        return version

    async def _read(self, skus: Iterable[str]) -> dict[str, Product]:
        wanted = list(skus)
        if not wanted:
            return {}
        change = self._cache.changes
        rows = await self._pool.fetch(f"SELECT {PRODUCTS.columns} FROM products WHERE sku = ANY($1::text[])", wanted)
        found = {
            row["sku"]: (
                Product(row["name"], Money(row["price"], row["currency"]), row["withdrawn"]),
                row["version"],
            )
            for row in rows
        }
        self._cache.put(found, change)
        return {sku: product for sku, (product, _) in found.items()}
