"""A shadow of a view, built next to the live one: the same table with its own offsets, in its own PostgreSQL schema.

In that schema the table, its indexes and constraints have their final names, and the view's own SQL finds it by
the connection's search_path. So no part of a view has to know where it is being built. See docs/adr/0013.
"""

from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any

from aiokafka import TopicPartition

from services.operations.reading.views import Target
from shared.errors import OperatorError
from shared.schemas.decoder import Decoder
from shared.settings import Settings
from shared.store.database import Connection, open_pool

TABLE_SECONDS = 3600.0
"""The time limit of a statement over a whole table."""

PROGRESS_TABLES = """
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
# Commits need not be durable: a crash of the server loses rows together with the progress that belongs to them. There
# are no parallel workers, because the running shop needs the other cores.
CONNECTION_SETTINGS = """
SET synchronous_commit = off; SET max_parallel_workers_per_gather = 0; SET max_parallel_maintenance_workers = 0
"""
SET_OFFSET = """
INSERT INTO offsets (consumer, topic, partition, next_offset) VALUES ($1, $2, $3, $4)
ON CONFLICT (consumer, topic, partition) DO UPDATE SET next_offset = excluded.next_offset
"""


def new_schema(target: Target) -> str:
    """Names the schema in which a view is rebuilt."""
    return f"{target.service.name}__new"


def old_schema(target: Target) -> str:
    """Names the schema that keeps the replaced view."""
    return f"{target.service.name}__old"


@dataclass(frozen=True)
class BuildProgress:
    """The progress of an unfinished build."""

    source: str
    fold: str
    cursor: str
    events: int
    is_full: bool = False
    """The shadow has everything that was in the store; the rest comes from the topic."""


@dataclass
class ShadowView:
    """The table being built, locked against a second builder."""

    target: Target
    schema: str
    connection: Connection
    decoder: Decoder

    @property
    def live(self) -> str:
        """The schema of the live view."""
        return self.target.service.name

    @property
    def table(self) -> str:
        return self.target.view.table

    async def exists(self) -> bool:
        return await table_exists(self.connection, self.schema, self.table)

    async def create(self) -> None:
        """Creates the table without rows, with the keys that writing to it needs. Indexes come when it is full."""
        await self.connection.execute(f'DROP TABLE IF EXISTS "{self.schema}"."{self.table}"')
        await self.connection.execute(
            f'CREATE TABLE "{self.schema}"."{self.table}"'
            f' (LIKE "{self.live}"."{self.table}" INCLUDING ALL EXCLUDING INDEXES)'
        )
        for (statement,) in await self.connection.fetch(CONSTRAINTS, self.live, self.schema, self.table):
            await self.connection.execute(statement)

    async def create_indexes(self) -> None:
        for (statement,) in await self.connection.fetch(INDEXES, self.live, self.schema, self.table):
            create = statement.replace("CREATE INDEX ", "CREATE INDEX IF NOT EXISTS ", 1)
            await self.connection.execute(create, timeout=TABLE_SECONDS)
        await self.connection.execute(f'ANALYZE "{self.schema}"."{self.table}"', timeout=TABLE_SECONDS)

    async def count_rows(self) -> int:
        count = f'SELECT count(*) FROM "{self.schema}"."{self.table}"'
        rows: int = await self.connection.fetchval(count, timeout=TABLE_SECONDS)
        return rows

    async def progress(self) -> BuildProgress | None:
        row = await self.connection.fetchrow(
            "SELECT source, fold, cursor, events, is_full FROM building WHERE consumer = $1", self.target.name
        )
        return BuildProgress(*row) if row and await self.exists() else None

    async def begin(self, source: str, fold: str, offsets: Mapping[TopicPartition, int]) -> BuildProgress:
        """Starts a new build; anything an earlier one left is dropped."""
        async with self.connection.transaction():
            await self.forget_progress()
            await self.create()
            await self.connection.execute(
                "INSERT INTO building (consumer, source, fold, cursor, events, is_full)"
                " VALUES ($1, $2, $3, '', 0, false)",
                self.target.name,
                source,
                fold,
            )
            await self.set_offsets(offsets)
        return BuildProgress(source, fold, "", 0)

    async def forget_progress(self) -> None:
        for table in ("building", "offsets"):
            await self.connection.execute(f"DELETE FROM {table} WHERE consumer = $1", self.target.name)

    async def add(self, rows: Sequence[tuple[str, Any]], cursor: str, events: int) -> None:
        """Writes rows and progress in one transaction, so that an interrupted build continues from here."""
        view = self.target.view
        async with self.connection.transaction():
            await self.connection.copy_records_to_table(
                view.table, records=[view.values(row) for _, row in rows], columns=view.names, schema_name=self.schema
            )
            await self.connection.execute(
                "UPDATE building SET cursor = $2, events = $3 WHERE consumer = $1", self.target.name, cursor, events
            )

    async def mark_full(self) -> None:
        await self.connection.execute("UPDATE building SET is_full = true WHERE consumer = $1", self.target.name)

    async def offsets(self) -> dict[TopicPartition, int]:
        return await read_offsets(self.connection, self.schema, self.target.name)

    async def set_offsets(self, offsets: Mapping[TopicPartition, int]) -> None:
        await self.connection.executemany(
            SET_OFFSET, [(self.target.name, *partition, offset) for partition, offset in offsets.items()]
        )


async def table_exists(connection: Any, schema: str, table: str) -> bool:
    found = await connection.fetchval("SELECT to_regclass(format('%I.%I', $1::text, $2::text))", schema, table)
    return found is not None


async def read_offsets(
    connection: Connection, schema: str, consumer: str, lock: bool = False
) -> dict[TopicPartition, int]:
    """Reads the offsets of a consumer; `lock` holds its rows until the end of the transaction."""
    rows = await connection.fetch(
        f'SELECT topic, partition, next_offset FROM "{schema}".offsets WHERE consumer = $1'
        + (" FOR UPDATE" if lock else ""),
        consumer,
    )
    return {TopicPartition(topic, partition): offset for topic, partition, offset in rows}


@asynccontextmanager
async def open_shadow_view(
    settings: Settings, target: Target, schema: str, decoder: Decoder
) -> AsyncIterator[ShadowView]:
    """Opens the shadow of a view in `schema`. Refuses if the same view is being rebuilt by another process."""
    async with await open_pool(settings, schema, size=2) as pool, pool.acquire() as connection:
        if not await connection.fetchval("SELECT pg_try_advisory_lock(hashtext($1))", f"rebuild {target.name}"):
            raise OperatorError(f"{target.name} is being rebuilt by another process.", "Wait for it, or stop it first.")
        await connection.execute(f'CREATE SCHEMA IF NOT EXISTS "{schema}"')
        await connection.execute(PROGRESS_TABLES)
        await connection.execute(CONNECTION_SETTINGS)
        yield ShadowView(target, schema, connection, decoder)
