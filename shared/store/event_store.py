"""The event store: appends under optimistic concurrency control, and loads streams by version or time."""

from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Self

import asyncpg

from shared.envelope import Message, Recorded
from shared.errors import Refused
from shared.recovery.crash_points import crashpoint
from shared.store.answers import StoredAnswer
from shared.store.batching import Batcher
from shared.store.database import CONNECTION_ERRORS, Connection, Pool, Unavailable, is_connection_error

LARGEST_MESSAGE = 900_000
"""Bytes of a message, headers included. A broker takes a megabyte by default."""
TOO_LARGE = "event-too-large"
MAX_VERSION = 2**31 - 1
"""The largest version that the column can hold."""


class Conflict(Exception):
    """Another writer appended first, or used this Idempotency-Key first. Nothing was written; load and try again."""


class TooLarge(Refused):
    """The message is larger than brokers accept. If it were stored, the outbox would be stuck behind it forever."""

    def __init__(self, message: Message) -> None:
        size = f"{len(message.value)} bytes and {len(message.headers)} of headers"
        super().__init__(
            TOO_LARGE, f"{size} for {message.topic} are more than the {LARGEST_MESSAGE} that a message may have."
        )


@dataclass(slots=True)
class Write:
    """All that one decision changes, stored together or not at all: this is the transactional outbox."""

    events: list[Recorded] = field(default_factory=list)
    messages: list[Message] = field(default_factory=list)
    answers: list[StoredAnswer] = field(default_factory=list)
    deadlines: dict[str, tuple[datetime, int]] = field(default_factory=dict)
    """For each stream, the moment to look at it again and the version of the event that asks for it."""

    def __bool__(self) -> bool:
        return bool(self.events or self.messages or self.answers or self.deadlines)


STORED_COLUMNS = ", ".join(Recorded._fields)
"""The columns of `events` that a writer fills."""
STORED_ROWS = """unnest($1::text[], $2::int[], $3::uuid[], $4::text[], $5::timestamptz[],
                         $6::text[], $7::text[], $8::text[], $9::text[], $10::bytea[])"""
"""The rows to store, from one array per column; `columns` makes the arrays."""
EVENT_COLUMNS = STORED_COLUMNS.replace("event_id", "event_id::text")
"""The columns of `events` as `Recorded` takes them."""

# One statement is one round trip and one commit. Within a stream, positions follow versions: rows are
# inserted in array order, and version n+1 cannot be inserted before n is committed.
APPEND = f"""
WITH event AS (
    INSERT INTO events ({STORED_COLUMNS})
    SELECT * FROM {STORED_ROWS}
), message AS (
    INSERT INTO outbox (topic, key, value, headers, time)
    SELECT * FROM unnest($11::text[], $12::text[], $13::bytea[], $14::bytea[], $15::timestamptz[])
), answer AS (
    INSERT INTO answers (actor, key, request, status, headers, body, time)
    SELECT * FROM unnest($16::text[], $17::text[], $18::bytea[], $19::smallint[], $20::bytea[], $21::bytea[],
                         $22::timestamptz[])
), deadline AS (
    INSERT INTO deadlines (stream_id, due, version) SELECT * FROM unnest($23::text[], $24::timestamptz[], $25::int[])
    ON CONFLICT (stream_id) DO UPDATE SET due = excluded.due, version = excluded.version
)
SELECT pg_notify('outbox_' || current_schema(), '')
"""

# LATERAL makes PostgreSQL look each stream up in the index, however many it expects.
LOAD = """
SELECT wanted.stream_id, next.value
FROM unnest($1::text[], $2::int[]) AS wanted (stream_id, reached), LATERAL (
    SELECT version, value FROM events
    WHERE events.stream_id = wanted.stream_id AND version > reached ORDER BY version LIMIT $3) AS next
ORDER BY wanted.stream_id, next.version
"""


class EventStore:
    """The events of one service. Appends of concurrent callers go in one statement and share one fsync (group commit).

    Open it with `async with`: closing it commits every accepted write.
    """

    def __init__(self, pool: Pool, *, group_size: int = 256) -> None:
        self.pool = pool
        self._group_commit: Batcher[Write, None] = Batcher(self._commit, group_size)
        self._connection: Connection | None = None

    async def __aenter__(self) -> Self:
        # Connects now, so that the first append need not wait for it. Later, the pool might open a connection in the
        # background while it closes, which asyncpg cannot cancel cleanly.
        with suppress(*CONNECTION_ERRORS):
            await self._connected()
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._group_commit.finish()
        await self._release()

    async def append(self, write: Write) -> None:
        await self._group_commit.submit("all streams", write)

    async def _commit(self, _key: str, writes: Sequence[Write]) -> Sequence[Exception | None]:
        try:
            connection = await self._connected()
        except CONNECTION_ERRORS as error:
            return [Unavailable(error)] * len(writes)
        errors = await _commit_together(connection, writes)
        # The writes are durable from here on: the answer may be lost, the events cannot. The relay finds them in the
        # outbox.
        crashpoint("committed, not answered")
        return errors

    async def _connected(self) -> Connection:
        """Holds on to one connection: returning it to the pool costs a round trip, as much as a commit."""
        if self._connection is None or _is_lost(self._connection):
            await self._release()
            self._connection = await self.pool.acquire()
        return self._connection

    async def _release(self) -> None:
        connection, self._connection = self._connection, None
        if connection is not None:
            await self.pool.release(connection)  # type: ignore[arg-type] # it is one of the pool's own

    async def load(
        self, stream_id: str, after: int = 0, limit: int = 5000, source: "Connection | None" = None
    ) -> list[bytes]:
        """Returns the values of a stream's next events, which is all that a fold needs."""
        rows = await (source or self.pool).fetch(
            "SELECT value FROM events WHERE stream_id = $1 AND version > $2 ORDER BY version LIMIT $3",
            stream_id,
            after,
            limit,
        )
        return [row[0] for row in rows]

    async def load_timed(
        self, stream_id: str, after: int, up_to: int, limit: int = 1000
    ) -> list[tuple[datetime, bytes]]:
        """Returns times and values of a stream's next events, for a fold up to a moment."""
        rows = await self.pool.fetch(
            "SELECT time, value FROM events WHERE stream_id = $1 AND version > $2 AND version <= $3"
            " ORDER BY version LIMIT $4",
            stream_id,
            after,
            up_to,
            limit,
        )
        return [(row[0], row[1]) for row in rows]

    async def load_all(
        self, reached: Mapping[str, int], source: "Connection | None" = None, limit: int = 1000
    ) -> dict[str, list[bytes]]:
        """Returns the values after the version that each stream has reached, in one round trip.

        A stream that has none is not in the result.
        """
        if len(reached) == 1:  # often a long stream, for which the join is slower
            [(stream_id, after)] = reached.items()
            values = await self.load(stream_id, after, limit, source)
            return {stream_id: values} if values else {}
        loaded: dict[str, list[bytes]] = {}
        for stream_id, value in await (source or self.pool).fetch(LOAD, [*reached], [*reached.values()], limit):
            loaded.setdefault(stream_id, []).append(value)
        return loaded

    async def history(
        self,
        stream_id: str,
        *,
        after: int = 0,
        version: int | None = None,
        correlation_ids: Sequence[str] | None = None,
        limit: int | None = None,
    ) -> list[Recorded]:
        """Returns a stream's events with their envelopes, up to a version, or only those of some requests."""
        rows = await self.pool.fetch(
            f"SELECT {EVENT_COLUMNS} FROM events WHERE stream_id = $1 AND version > $2"
            " AND version <= coalesce($3, version) AND ($4::text[] IS NULL OR correlation_id = ANY($4))"
            " ORDER BY version LIMIT $5",
            stream_id,
            after,
            version,
            correlation_ids,
            limit,
        )
        return [Recorded(*row) for row in rows]


def _is_lost(connection: Connection) -> bool:
    try:
        return connection.is_closed()
    except asyncpg.InterfaceError:  # the pool has taken it back already
        return True


async def _commit_together(connection: Connection, writes: Sequence[Write]) -> Sequence[Exception | None]:
    try:
        await execute(connection, writes)
    except Exception as error:
        if is_connection_error(error):  # they may be stored all the same: a second try could conflict with the first
            return [Unavailable(error)] * len(writes)
        # One of them lost a race or cannot be stored, and the statement failed for all: now each by itself.
        return [await _commit_alone(connection, write) for write in writes]
    return [None] * len(writes)


async def _commit_alone(connection: Connection, write: Write) -> Exception | None:
    try:
        await execute(connection, [write])
    except Exception as error:  # it belongs to the caller of this write alone
        return Unavailable(error) if is_connection_error(error) else error
    return None


async def execute(connection: Connection, writes: Sequence[Write]) -> None:
    """Stores the writes in one statement, which is a transaction of its own unless the caller has opened one.

    Raises Conflict if another writer was faster, and TooLarge for a message that no broker would take.
    """
    for write in writes:
        for message in write.messages:
            if len(message.value) + len(message.headers) > LARGEST_MESSAGE:
                raise TooLarge(message)
    try:
        await connection.fetchval(
            APPEND,
            *columns([event for write in writes for event in write.events], 10),
            *columns([message for write in writes for message in write.messages], 5),
            *columns([answer for write in writes for answer in write.answers], 7),
            *columns([(stream_id, *due) for write in writes for stream_id, due in write.deadlines.items()], 3),
        )
    except asyncpg.UniqueViolationError as lost:
        raise Conflict(lost.constraint_name) from lost


def columns(rows: Sequence[tuple[Any, ...]], width: int) -> Sequence[Sequence[Any]]:
    """Transposes rows for `unnest`, which takes one array per column."""
    return list(zip(*rows, strict=True)) if rows else [()] * width
