"""A view built beside the live one: the same table in a PostgreSQL schema of its own, with offsets of its own.

In a schema of its own the table, its indexes and constraints have their final names, and the view's own SQL finds
it by the connection's search_path: nothing of a view has to know where it is being built. See docs/adr/0013.
"""

from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any

from aiokafka import TopicPartition

from services.replay.targets import Target
from shared.consumer import Decoding
from shared.database import Connection, open_pool
from shared.errors import OperatorError
from shared.settings import Settings

LONG = 3600.0
"""Seconds that a statement over a whole table may take."""

BOOKS = """
CREATE TABLE IF NOT EXISTS offsets (
    consumer text, topic text, partition int, next_offset bigint NOT NULL, PRIMARY KEY (consumer, topic, partition));
CREATE TABLE IF NOT EXISTS building (
    consumer text PRIMARY KEY, source text NOT NULL, fold text NOT NULL, cursor text NOT NULL, events bigint NOT NULL,
    is_full bool NOT NULL)
"""
CONSTRAINTS = """
SELECT format('ALTER TABLE %I.%I ADD CONSTRAINT %I %s', $2::text, $3::text, conname, pg_get_constraintdef(oid))
FROM pg_constraint WHERE conrelid = format('%I.%I', $1::text, $3::text)::regclass AND contype IN ('p', 'u')
"""
INDEXES = """
SELECT replace(pg_get_indexdef(indexrelid), format(' ON %I.%I ', $1::text, $3::text),
               format(' ON %I.%I ', $2::text, $3::text))
FROM pg_index WHERE indrelid = format('%I.%I', $1::text, $3::text)::regclass
  AND NOT EXISTS (SELECT FROM pg_constraint WHERE conindid = indexrelid)
"""
# What is lost with a crash of the server is lost together with the note of it. And the shop comes first: it needs the
# other cores.
MODEST = """
SET synchronous_commit = off; SET max_parallel_workers_per_gather = 0; SET max_parallel_maintenance_workers = 0
"""
SET_OFFSET = """
INSERT INTO offsets (consumer, topic, partition, next_offset) VALUES ($1, $2, $3, $4)
ON CONFLICT (consumer, topic, partition) DO UPDATE SET next_offset = excluded.next_offset
"""


def new(target: Target) -> str:
    return f"{target.service.name}__new"


def old(target: Target) -> str:
    return f"{target.service.name}__old"


@dataclass(frozen=True)
class Building:
    """How far it is."""

    source: str
    fold: str
    cursor: str
    events: int
    is_full: bool = False
    """All that was in the store is in it; what is left is in the topic."""


@dataclass
class Beside:
    """A place beside the live view, for as long as nobody else builds there."""

    target: Target
    schema: str
    connection: Connection
    memory: Decoding

    @property
    def live(self) -> str:
        return self.target.service.name

    @property
    def table(self) -> str:
        return self.target.view.table

    async def exists(self) -> bool:
        found = await self.connection.fetchval("SELECT to_regclass(format('%I.%I', $1::text, $2::text))", *self._place)
        return found is not None

    @property
    def _place(self) -> tuple[str, str]:
        return self.schema, self.table

    async def create(self) -> None:
        """The table without rows, and with the keys that writing to it needs. Indexes come when it is full."""
        await self.connection.execute(f'DROP TABLE IF EXISTS "{self.schema}"."{self.table}"')
        await self.connection.execute(
            f'CREATE TABLE "{self.schema}"."{self.table}"'
            f' (LIKE "{self.live}"."{self.table}" INCLUDING ALL EXCLUDING INDEXES)'
        )
        for (statement,) in await self.connection.fetch(CONSTRAINTS, self.live, *self._place):
            await self.connection.execute(statement)

    async def create_indexes(self) -> None:
        for (statement,) in await self.connection.fetch(INDEXES, self.live, *self._place):
            name = statement.replace("CREATE INDEX ", "CREATE INDEX IF NOT EXISTS ", 1)
            await self.connection.execute(name, timeout=LONG)
        await self.connection.execute(f'ANALYZE "{self.schema}"."{self.table}"', timeout=LONG)

    async def building(self) -> Building | None:
        row = await self.connection.fetchrow(
            "SELECT source, fold, cursor, events, is_full FROM building WHERE consumer = $1", self.target.name
        )
        return Building(*row) if row and await self.exists() else None

    async def begin(self, source: str, fold: str, offsets: Mapping[TopicPartition, int]) -> Building:
        async with self.connection.transaction():
            await self.forget()
            await self.create()
            await self.connection.execute(
                "INSERT INTO building (consumer, source, fold, cursor, events, is_full)"
                " VALUES ($1, $2, $3, '', 0, false)",
                self.target.name,
                source,
                fold,
            )
            await self.move_to(offsets)
        return Building(source, fold, "", 0)

    async def forget(self) -> None:
        for book in ("building", "offsets"):
            await self.connection.execute(f"DELETE FROM {book} WHERE consumer = $1", self.target.name)

    async def add(self, rows: Sequence[tuple[str, Any]], cursor: str, events: int) -> None:
        """Rows and how far they reach, together: who dies goes on from here."""
        view = self.target.view
        async with self.connection.transaction():
            await self.connection.copy_records_to_table(
                view.table, records=[view.values(row) for _, row in rows], columns=view.names, schema_name=self.schema
            )
            await self.connection.execute(
                "UPDATE building SET cursor = $2, events = $3 WHERE consumer = $1", self.target.name, cursor, events
            )

    async def is_full(self) -> None:
        await self.connection.execute("UPDATE building SET is_full = true WHERE consumer = $1", self.target.name)

    async def offsets(self) -> dict[TopicPartition, int]:
        return await offsets_of(self.connection, self.schema, self.target.name)

    async def move_to(self, offsets: Mapping[TopicPartition, int]) -> None:
        await self.connection.executemany(
            SET_OFFSET, [(self.target.name, *partition, offset) for partition, offset in offsets.items()]
        )


async def offsets_of(
    connection: Connection, schema: str, consumer: str, locked: bool = False
) -> dict[TopicPartition, int]:
    rows = await connection.fetch(
        f'SELECT topic, partition, next_offset FROM "{schema}".offsets WHERE consumer = $1'
        + (" FOR UPDATE" if locked else ""),
        consumer,
    )
    return {TopicPartition(topic, partition): offset for topic, partition, offset in rows}


@asynccontextmanager
async def beside(settings: Settings, target: Target, schema: str, memory: Decoding) -> AsyncIterator[Beside]:
    """Alone: a second one that builds the same view is told so."""
    async with await open_pool(settings, schema, size=2) as pool, pool.acquire() as connection:
        if not await connection.fetchval("SELECT pg_try_advisory_lock(hashtext($1))", f"rebuild {target.name}"):
            raise OperatorError(f"{target.name} is being rebuilt by another.", "Wait for it, or stop it first.")
        await connection.execute(f'CREATE SCHEMA IF NOT EXISTS "{schema}"')
        await connection.execute(BOOKS)
        await connection.execute(MODEST)
        yield Beside(target, schema, connection, memory)
