"""Writes the event logs of a shop by hand, in a database of its own: each event with its time and its cause."""

import asyncio
import secrets
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any
from uuid import UUID

import asyncpg
from pydantic import SecretStr

from infra.settings import Settings
from services.operations.reading.stores import category_of
from services.shop.services import STREAMS, shop_services
from shared.envelope import Recorded, millis
from shared.schemas.codec import Codec
from shared.schemas.contract.event_schemas import load_schemas
from shared.schemas.registration import push
from shared.schemas.registry import Registry
from shared.schemas.service_schemas import ServiceSchemas
from shared.service import migrate_service
from shared.store.database import open_pool
from shared.store.event_store import Write, execute

ANN = "0197f3a2-6f0e-7c3b-9d51-2f6f0c8e1b7a"


@dataclass
class Pen:
    settings: Settings
    codec: Codec
    at: datetime
    """The time of the next event, unless the call gives one."""
    versions: Counter[str] = field(default_factory=Counter)

    @property
    def environment(self) -> dict[str, str]:
        return {"TILL_DATABASE_URL": self.settings.database_url.get_secret_value()}

    def write(
        self,
        stream_id: str,
        *events: Any,
        because: Recorded | None = None,
        at: datetime | None = None,
        actor: str = "",
        correlation_id: str = "",
    ) -> Recorded:
        """Records the events of one decision, and returns the last. Without a cause, Ann has requested them."""
        self.at += timedelta(milliseconds=10)
        time = at or self.at
        request = identifier(time)
        correlation_id = correlation_id or (because.correlation_id if because else request)
        actor = actor or (f"service:{service_of(stream_id)}" if because else ANN)
        cause = because.event_id if because else request
        recorded = [
            Recorded(
                stream_id,
                self.versions[stream_id] + n,
                identifier(time),
                type(event).__name__,
                time,
                correlation_id,
                cause,
                actor,
                "",
                self.codec.encode(event),
            )
            for n, event in enumerate(events, 1)
        ]
        self.versions[stream_id] += len(recorded)
        self.store(Write(events=recorded))
        return recorded[-1]

    def store(self, write: Write) -> None:
        asyncio.run(self._store(service_of(write.events[0].stream_id), write))

    def execute(self, service: str, query: str, *arguments: Any) -> list[Any]:
        return asyncio.run(self._execute(service, query, arguments))

    async def _store(self, service: str, write: Write) -> None:
        async with await open_pool(self.settings, service, 2) as pool, pool.acquire() as connection:
            await execute(connection, [write])

    async def _execute(self, service: str, query: str, arguments: tuple[Any, ...]) -> list[Any]:
        async with await open_pool(self.settings, service, 2) as pool:
            return list(await pool.fetch(query, *arguments))


def service_of(stream_id: str) -> str:
    return STREAMS[category_of(stream_id)].service


def identifier(time: datetime) -> str:
    """Makes the UUIDv7 that a clock showing this time would make."""
    random = secrets.randbits(74)
    return str(UUID(int=millis(time) << 80 | 7 << 76 | (random >> 62) << 64 | 2 << 62 | random & (2**62 - 1)))


@contextmanager
def written_shop(stack: Settings, at: datetime) -> Iterator[Pen]:
    """Creates a database with the empty tables of all services, and drops it at the end."""
    name = f"written_{secrets.token_hex(6)}"
    url = stack.database_url.get_secret_value()
    own = stack.model_copy(update={"database_url": SecretStr(f"{url.rpartition('/')[0]}/{name}")})
    superuser = url.replace("://till:", "://postgres:", 1)  # the shop's own role may not create databases
    asyncio.run(_execute_at(superuser, f'CREATE DATABASE "{name}" OWNER till'))
    try:
        codec = Codec()
        asyncio.run(_prepare(own, codec))
        yield Pen(own, codec, at)
    finally:
        asyncio.run(_execute_at(superuser, f'DROP DATABASE "{name}" WITH (FORCE)'))


async def _prepare(settings: Settings, codec: Codec) -> None:
    schemas = load_schemas()
    async with Registry(settings) as registry:
        await push(registry, schemas)
        for service in shop_services(settings):
            await migrate_service(service, settings)
            async with await open_pool(settings, service.name, 2) as pool:
                service_schemas = ServiceSchemas(pool, registry, schemas, codec)
                await service_schemas.bind(service.decider.topic, service.decider.events)


async def _execute_at(url: str, query: str) -> None:
    connection = await asyncpg.connect(url)
    try:
        await connection.execute(query)
    finally:
        await connection.close()
