"""Opens the event stores of services for reading: no service is started, no web framework and no Kafka is needed.

`till state` has 300 ms for everything, the start of Python included. So this module, and what it imports, stay light.
"""

from collections.abc import AsyncIterator, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, Any

from services.shop.services import all_deciders
from shared.decider import Decider
from shared.envelope import Recorded
from shared.errors import OperatorError
from shared.schemas.contract.event_schemas import Schemas, load_schemas
from shared.schemas.decoder import Decoder
from shared.store.database import Pool, pool_at
from shared.store.event_store import EventStore
from shared.store.snapshots import Snapshots
from shared.store.time_travel import Past

if TYPE_CHECKING:
    from shared.settings import Settings

CONNECTIONS = 4


@dataclass(frozen=True)
class Store:
    """The event store of one service, opened for reading."""

    service: str
    decider: Decider[Any, Any, Any]
    pool: Pool
    decoder: Decoder
    past: Past

    @property
    def events(self) -> EventStore:
        return self.past.store

    async def event(self, stream_id: str, version: int) -> Recorded | None:
        return next(iter(await self.events.history(stream_id, after=version - 1, limit=1)), None)

    async def latest_version(self, stream_id: str) -> int:
        """Returns the latest version of a stream; 0 where there is no such stream."""
        found = await self.pool.fetchval("SELECT max(version) FROM events WHERE stream_id = $1", stream_id)
        return found or 0


Stores = dict[str, Store]
"""Opened stores by name of their service."""


def category_of(stream_id: str) -> str:
    return stream_id.partition(":")[0]


def key_of(stream_id: str) -> str:
    return stream_id.partition(":")[2]


def store_of(stores: Stores, stream_id: str) -> Store:
    """Returns the store that holds the stream."""
    category = category_of(stream_id)
    return next(store for store in stores.values() if store.decider.category == category)


def no_shop() -> OperatorError:
    """Returns the error for a database that has no tables of a shop."""
    return OperatorError("No shop has ever run on this database.", "Start one with: till up")


@cache
def _schemas() -> Schemas:
    """Reads the schema files once: a process of `till verify` opens the stores for each of its checks."""
    return load_schemas()


@asynccontextmanager
async def open_stores(
    url: str,
    deciders: Mapping[str, Decider[Any, Any, Any]] | None = None,
    schemas: Schemas | None = None,
    settings: "Settings | None" = None,
) -> AsyncIterator[Stores]:
    """Opens the stores of services, given by name with their deciders, in the database at `url`; by default all.

    `settings` say where the registry is; without them they are loaded when a schema is needed from there.
    """
    known = schemas or _schemas()
    async with AsyncExitStack() as stack:
        stores: Stores = {}
        for service, decider in (deciders or all_deciders()).items():
            pool = await stack.enter_async_context(await pool_at(url, service, CONNECTIONS))
            decoder = Decoder.for_reading(known, pool, decider, settings)
            past = Past(decider, EventStore(pool), Snapshots(pool, decider), decoder.decode)
            stores[service] = Store(service, decider, pool, decoder, past)
        yield stores
