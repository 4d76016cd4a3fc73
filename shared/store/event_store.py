"""The event store: append under an optimistic lock with shared commits; load by stream, version, time, position."""

import asyncio
from collections.abc import AsyncIterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, NamedTuple, Self

import asyncpg

from shared.crashpoints import crashpoint
from shared.database import AWAY, Connection, Pool, is_away
from shared.envelope import Message, Recorded
from shared.errors import Refused

RETRY_SECONDS = 0.2
LARGEST = 900_000
"""Bytes of a message, headers included. A broker takes a megabyte, unless it is told otherwise."""
TOO_LARGE = "event-too-large"


class Conflict(Exception):
    """Someone else appended first, or answered this Idempotency-Key first. Nothing was written; load and try again."""


class TooLarge(Refused):
    """Were it stored, it would never leave: no broker takes it, and everything behind it would wait."""

    def __init__(self, message: Message) -> None:
        size = f"{len(message.value)} bytes and {len(message.headers)} of headers"
        super().__init__(TOO_LARGE, f"{size} for {message.topic} are more than the {LARGEST} that a message may have.")


class Unavailable(Exception):
    """The database is away. What was in flight may or may not be stored: only an Idempotency-Key tells."""


class StoredAnswer(NamedTuple):
    actor: str
    key: str
    request: bytes
    status: int
    headers: bytes
    body: bytes
    time: datetime


@dataclass(slots=True)
class Write:
    """All that one decision changes, stored together or not at all."""

    events: list[Recorded] = field(default_factory=list)
    messages: list[Message] = field(default_factory=list)
    answers: list[StoredAnswer] = field(default_factory=list)
    deadlines: list[tuple[str, datetime, int]] = field(default_factory=list)
    """Stream, moment, and the version of the event that sets it."""

    def __bool__(self) -> bool:
        return bool(self.events or self.messages or self.answers or self.deadlines)


# One statement is one round trip and one commit. Within a stream, positions follow versions: rows are
# inserted in array order, and version n+1 cannot be inserted before n is committed.
APPEND = """
WITH event AS (
    INSERT INTO events (stream_id, version, event_id, type, time,
                        correlation_id, causation_id, actor, traceparent, value)
    SELECT * FROM unnest($1::text[], $2::int[], $3::uuid[], $4::text[], $5::timestamptz[],
                         $6::text[], $7::text[], $8::text[], $9::text[], $10::bytea[])
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

# LATERAL: each stream is looked up in the index, whatever the planner thinks of their number.
LOAD = """
SELECT known.stream_id, news.value
FROM unnest($1::text[], $2::int[]) AS known (stream_id, reached), LATERAL (
    SELECT version, value FROM events
    WHERE events.stream_id = known.stream_id AND version > reached ORDER BY version LIMIT $3) AS news
ORDER BY known.stream_id, news.version
"""

EVENT_COLUMNS = (
    "stream_id, version, event_id::text, type, time, correlation_id, causation_id, actor, traceparent, value"
)


class EventStore:
    """Open with `async with`. Appends of concurrent callers travel in one statement and share one fsync."""

    def __init__(self, pool: Pool, *, group_size: int = 256) -> None:
        self.pool = pool
        self._group_size = group_size
        self._waiting: list[tuple[Write, asyncio.Future[None]]] = []
        self._wake = asyncio.Event()
        self._committer: asyncio.Task[None] | None = None

    async def __aenter__(self) -> Self:
        self._committer = asyncio.create_task(self._commit_groups(), name="group commit")
        return self

    async def __aexit__(self, *_: object) -> None:
        """Whatever was accepted is committed before this returns."""
        while self._waiting:
            await asyncio.wait([future for _, future in self._waiting])
        if self._committer:
            self._committer.cancel()
            await asyncio.gather(self._committer, return_exceptions=True)

    async def append(self, write: Write) -> None:
        done = asyncio.get_running_loop().create_future()
        self._waiting.append((write, done))
        self._wake.set()
        await done

    async def _commit_groups(self) -> None:
        while True:
            try:
                # Held for good: going back to the pool costs a round trip, as much as a commit.
                async with self.pool.acquire() as connection:
                    while not connection.is_closed():
                        await self._commit_next(connection)
            except AWAY as away:
                await self._fail_waiting(away)

    async def _commit_next(self, connection: Connection) -> None:
        await self._wake.wait()
        if connection.is_closed():  # while nobody wrote: what waits now shall not pay for it
            return
        self._wake.clear()
        while group := self._waiting[: self._group_size]:
            errors = await self._commit_group(connection, group)
            del self._waiting[: len(group)]
            # Durable from here on: the answer may be lost, the events cannot. The relay finds them in the outbox.
            crashpoint("committed, not answered")
            for (_, done), error in zip(group, errors, strict=True):
                if done.done():
                    continue  # the caller went away; what it asked for is done all the same
                if error:
                    done.set_exception(error)
                else:
                    done.set_result(None)

    async def _commit_group(
        self, connection: Connection, group: list[tuple[Write, asyncio.Future[None]]]
    ) -> Sequence[Exception | None]:
        writes = [write for write, _ in group]
        try:
            await execute(connection, writes)
        except Exception as error:
            if is_away(error):  # they may be stored all the same: to try again would find ourselves in the way
                return [Unavailable(f"PostgreSQL: {error!r}")] * len(group)
            # One of them lost a race, or is not storable, and took the others down with it: each for itself.
            return [await self._commit_one(connection, write) for write in writes]
        return [None] * len(group)

    async def _commit_one(self, connection: Connection, write: Write) -> Exception | None:
        try:
            await execute(connection, [write])
        except asyncpg.UniqueViolationError as lost:
            return Conflict(lost.constraint_name)
        except Exception as error:  # it belongs to who waits for it; the committer lives on
            return Unavailable(f"PostgreSQL: {error!r}") if is_away(error) else error
        return None

    async def _fail_waiting(self, away: BaseException) -> None:
        """No connection to be had. Nothing of what waits was sent: say so at once rather than let it hang."""
        waiting, self._waiting = self._waiting, []
        for _, done in waiting:
            if not done.done():
                done.set_exception(Unavailable(f"PostgreSQL: {away!r}"))
        await asyncio.sleep(RETRY_SECONDS)

    async def load(
        self, stream_id: str, after: int = 0, limit: int = 5000, source: "Connection | None" = None
    ) -> list[bytes]:
        """The values of a stream's next events: all that a fold needs."""
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
        """The same with their times, for who folds up to a moment."""
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
        """The same of many streams in one round trip, each after the version that is reached: of those with news."""
        if len(reached) == 1:  # a long stream, mostly: the join of many is slower
            [(stream_id, after)] = reached.items()
            values = await self.load(stream_id, after, limit, source)
            return {stream_id: values} if values else {}
        news: dict[str, list[bytes]] = {}
        for stream_id, value in await (source or self.pool).fetch(LOAD, [*reached], [*reached.values()], limit):
            news.setdefault(stream_id, []).append(value)
        return news

    async def history(
        self,
        stream_id: str,
        *,
        after: int = 0,
        version: int | None = None,
        at: datetime | None = None,
        correlation_ids: Sequence[str] | None = None,
        limit: int | None = None,
    ) -> list[Recorded]:
        """A stream's events with their envelopes: up to a version or a moment, or those of some requests alone."""
        rows = await self.pool.fetch(
            f"SELECT {EVENT_COLUMNS} FROM events WHERE stream_id = $1 AND version > $2"
            " AND version <= coalesce($3, version) AND time <= coalesce($4, time)"
            " AND ($5::text[] IS NULL OR correlation_id = ANY($5)) ORDER BY version LIMIT $6",
            stream_id,
            after,
            version,
            at,
            correlation_ids,
            limit,
        )
        return [Recorded(*row) for row in rows]

    async def read(self, after: int = 0, chunk: int = 5000) -> AsyncIterator[tuple[int, Recorded]]:
        """Every event by position, in chunks: memory stays flat."""
        while True:
            rows = await self.pool.fetch(
                f"SELECT position, {EVENT_COLUMNS} FROM events WHERE position > $1 ORDER BY position LIMIT $2",
                after,
                chunk,
            )
            for row in rows:
                yield row[0], Recorded(*row[1:])
            if len(rows) < chunk:
                return
            after = rows[-1][0]

    async def answer(self, actor: str, key: str) -> StoredAnswer | None:
        row = await self.pool.fetchrow(
            "SELECT actor, key, request, status, headers, body, time FROM answers WHERE actor = $1 AND key = $2",
            actor,
            key,
        )
        return StoredAnswer(*row) if row else None


async def execute(connection: Connection, writes: Sequence[Write]) -> None:
    """Store the writes in one statement; a transaction around it is the caller's affair."""
    for write in writes:
        for message in write.messages:
            if len(message.value) + len(message.headers) > LARGEST:
                raise TooLarge(message)
    await connection.fetchval(
        APPEND,
        *columns([event for write in writes for event in write.events], 10),
        *columns([message for write in writes for message in write.messages], 5),
        *columns([answer for write in writes for answer in write.answers], 7),
        *columns([deadline for write in writes for deadline in write.deadlines], 3),
    )


def columns(rows: Sequence[tuple[Any, ...]], width: int) -> Sequence[Sequence[Any]]:
    return list(zip(*rows, strict=True)) if rows else [()] * width
