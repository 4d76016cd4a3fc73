"""The rolls of the shop, each opened for reading alone: no web framework, no Kafka, and no service started for it."""

from collections.abc import AsyncIterator, Iterable
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from importlib import import_module
from typing import Any, NamedTuple

from shared.database import Pool, pool_at
from shared.decider import Decider
from shared.envelope import Recorded
from shared.remembered import Remembered
from shared.schemas import Schemas, load_schemas
from shared.snapshots import Snapshots
from shared.store import EventStore
from shared.timetravel import Past

CONNECTIONS = 2


class Kept(NamedTuple):
    """Where the roll of a category of streams is kept, and whose rules fold it."""

    service: str
    topic: str


CATEGORIES = {
    "cart": Kept("cart", "cart.events"),
    "order": Kept("order", "order.events"),
    "payment": Kept("payment", "payment.events"),
    "stock": Kept("catalog", "stock.events"),
}
"""As each `wiring.py` has it, which would bring the web framework in."""


@dataclass(frozen=True)
class Roll:
    """Of one service, opened."""

    service: str
    pool: Pool
    past: Past
    memory: Remembered

    @property
    def decider(self) -> Decider[Any, Any, Any]:
        return self.past.decider

    @property
    def store(self) -> EventStore:
        return self.past.store

    async def event(self, stream_id: str, version: int) -> Recorded | None:
        return next(iter(await self.store.history(stream_id, after=version - 1, limit=1)), None)

    async def latest(self, stream_id: str) -> int:
        """Its latest version; 0 where there is no such stream."""
        found = await self.pool.fetchval("SELECT max(version) FROM events WHERE stream_id = $1", stream_id)
        return found or 0


Rolls = dict[str, Roll]
"""By category."""


def category_of(stream_id: str) -> str:
    return stream_id.partition(":")[0]


def key_of(stream_id: str) -> str:
    return stream_id.partition(":")[2]


def decider_of(category: str) -> Decider[Any, Any, Any]:
    kept = CATEGORIES[category]
    rules = import_module(f"services.{kept.service}.decider")
    return Decider(category, kept.topic, rules.initial, rules.decide, rules.evolve)


@asynccontextmanager
async def open_rolls(url: str, categories: Iterable[str] = CATEGORIES) -> AsyncIterator[Rolls]:
    """`url` is that of the database, which they share."""
    schemas = load_schemas()
    async with AsyncExitStack() as stack:
        yield {name: await stack.enter_async_context(_opened(url, schemas, name)) for name in categories}


@asynccontextmanager
async def _opened(url: str, schemas: Schemas, category: str) -> AsyncIterator[Roll]:
    decider, service = decider_of(category), CATEGORIES[category].service
    async with await pool_at(url, service, CONNECTIONS) as pool:
        memory = Remembered(pool, schemas, decider)
        past = Past(decider, EventStore(pool), Snapshots(pool, decider), memory.decode)
        yield Roll(service, pool, past, memory)
