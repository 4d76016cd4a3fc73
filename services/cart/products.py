"""What the cart knows of products, at the price of a dictionary: the table in memory, kept true by NOTIFY."""

import asyncio
import logging
from collections.abc import AsyncIterator, Iterable
from contextlib import asynccontextmanager

from services.cart.commands import Product
from services.cart.views import CHANGED
from shared.cancellation import heed_cancellation
from shared.database import AWAY, Connection, Pool, listening
from shared.money import Money

log = logging.getLogger(__name__)


class Products:
    """Remembers nothing while it cannot hear of changes; then every look-up goes to the table."""

    def __init__(self, pool: Pool) -> None:
        self._pool = pool
        self._known: dict[str, tuple[Product, int]] = {}
        self._listening = False
        self._heard = 0

    async def find(self, sku: str) -> Product | None:
        if known := self._known.get(sku):
            return known[0]
        return (await self._read([sku])).get(sku)

    async def find_all(self, skus: Iterable[str]) -> dict[str, Product]:
        wanted = set(skus)
        known = {sku: self._known[sku][0] for sku in wanted if sku in self._known}
        return known | await self._read(wanted - known.keys())

    async def version(self, sku: str) -> int:
        """Of the product's stream, as the table has it; 0 for a product that it has not heard of."""
        version = await self._pool.fetchval("SELECT version FROM products WHERE sku = $1", sku)
        if sku in self._known and self._known[sku][1] < (version or 0):
            del self._known[sku]  # the table is ahead of the notice
        return version or 0

    async def _read(self, skus: Iterable[str]) -> dict[str, Product]:
        wanted = list(skus)
        if not wanted:
            return {}
        heard = self._heard
        rows = await self._pool.fetch(
            "SELECT sku, name, price, currency, withdrawn, version FROM products WHERE sku = ANY($1::text[])",
            wanted,
        )
        found = {
            row["sku"]: (
                Product(row["name"], Money(row["price"], row["currency"]), row["withdrawn"]),
                row["version"],
            )
            for row in rows
        }
        if self._listening and heard == self._heard:  # else it may be old news already
            self._known.update(found)
        return {sku: product for sku, (product, _) in found.items()}

    async def follow(self) -> None:
        """Until cancelled: forget what has changed."""
        while True:
            heed_cancellation()
            try:
                async with (
                    self._pool.acquire() as connection,
                    listening(connection, CHANGED, self._changed),
                    self._trusting(connection) as lost,
                ):
                    await lost.wait()
            except AWAY as away:
                log.warning("product changes are not heard; it tries again", extra={"error": repr(away)})
            await asyncio.sleep(0.5)

    @asynccontextmanager
    async def _trusting(self, connection: Connection) -> AsyncIterator[asyncio.Event]:
        """As long as changes are heard, what was looked up may be remembered. Set when they no longer are."""
        lost = asyncio.Event()
        connection.add_termination_listener(lambda *_: lost.set())
        self._heard += 1
        self._listening = True
        try:
            yield lost
        finally:
            self._listening = False
            self._known.clear()

    def _changed(self, _connection: object, _pid: int, _channel: str, sku: object) -> None:
        self._heard += 1
        self._known.pop(str(sku), None)
