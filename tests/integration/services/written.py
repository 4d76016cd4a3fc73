"""Rolls of a shop written by hand, in a database of their own: what happened, when, and because of what."""

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

from services.replay.rolls import CATEGORIES, category_of, decider_of
from shared.codec import Codec
from shared.database import open_pool
from shared.envelope import Recorded, millis
from shared.migrations import migrate
from shared.registry import Registry, SchemaMemory, push
from shared.schemas import load_schemas
from shared.settings import Settings
from shared.store import Write, execute

ANN = "0197f3a2-6f0e-7c3b-9d51-2f6f0c8e1b7a"


@dataclass
class Pen:
    settings: Settings
    codec: Codec
    at: datetime
    """Of the next event, unless it is said."""
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
        """Of several, the last. Without a cause it is somebody's request."""
        self.at += timedelta(milliseconds=10)
        time = at or self.at
        request = identifier(time)
        correlation_id = correlation_id or (because.correlation_id if because else request)
        actor = actor or (f"service:{CATEGORIES[category_of(stream_id)].service}" if because else ANN)
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
        service = CATEGORIES[category_of(write.events[0].stream_id)].service
        asyncio.run(self._store(service, write))

    def execute(self, service: str, query: str, *arguments: Any) -> list[Any]:
        return asyncio.run(self._execute(service, query, arguments))

    async def _store(self, service: str, write: Write) -> None:
        async with await open_pool(self.settings, service, 2) as pool, pool.acquire() as connection:
            await execute(connection, [write])

    async def _execute(self, service: str, query: str, arguments: tuple[Any, ...]) -> list[Any]:
        async with await open_pool(self.settings, service, 2) as pool:
            return list(await pool.fetch(query, *arguments))


def identifier(time: datetime) -> str:
    """As the clock of who writes would have made it."""
    random = secrets.randbits(74)
    return str(UUID(int=millis(time) << 80 | 7 << 76 | (random >> 62) << 64 | 2 << 62 | random & (2**62 - 1)))


@contextmanager
def written_shop(stack: Settings, at: datetime) -> Iterator[Pen]:
    """A database with the tables of all services, and nothing in them."""
    name = f"rolls_{secrets.token_hex(6)}"
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
        for category, kept in CATEGORIES.items():
            await migrate(settings.database_url.get_secret_value(), kept.service)
            async with await open_pool(settings, kept.service, 2) as pool:
                memory = SchemaMemory(pool, registry, schemas, codec)
                await memory.bind(kept.topic, decider_of(category).events)


async def _execute_at(url: str, query: str) -> None:
    connection = await asyncpg.connect(url)
    try:
        await connection.execute(query)
    finally:
        await connection.close()
