"""Takes a consistent cut through the logs of all services: what had happened at a moment, no effect without its cause.

The clocks of services may disagree, so a reply may be dated before its request, and dates alone are not enough. An
event whose cause is outside of the cut is taken back, and so are its own effects, and theirs, and so on.
"""

from collections.abc import AsyncIterator, Collection, Iterable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, NamedTuple

from services.operations.reading.stores import Stores
from shared.store.database import Connection

ROWS_PREFETCHED = 2000
QUERY_SECONDS = 3600.0
"""The time limit of a statement over all of history."""

# A stream's past ends before its first event that is dated later than the moment, even if a later version is not.
OUT_OF_ORDER = """
SELECT stream_id, min(later.first) FROM {events} earlier JOIN (
    SELECT stream_id, min(version) AS first FROM {events} WHERE time > $1 GROUP BY stream_id) later USING (stream_id)
WHERE earlier.time <= $1 AND earlier.version > later.first GROUP BY stream_id
"""
EFFECTS_OF_LATER = """
SELECT stream_id, min(version) FROM {events} JOIN ({later}) later ON later.id = causation_id
WHERE time <= $1 GROUP BY stream_id
"""
EFFECTS_OF_THESE = """
SELECT stream_id, min(version) FROM {events} WHERE time <= $1 AND causation_id = ANY($2::text[]) GROUP BY stream_id
"""
IDS = """
SELECT event_id::text FROM {events} JOIN unnest($2::text[], $3::int[], $4::int[]) AS cut (stream_id, first, before)
USING (stream_id) WHERE time <= $1 AND version >= cut.first AND version < cut.before
"""
EVENTS = "SELECT position, stream_id, version, value FROM {events} WHERE time <= $1 ORDER BY stream_id, version"
NO_END = 2**31 - 1


class Cut(NamedTuple):
    """A moment, and the streams that end earlier than their dates say."""

    at: datetime
    ends: dict[str, int]
    """The first version that is outside although it is dated before the moment, by stream."""


@dataclass
class Reach:
    """The extent of the cut in the log of one service."""

    position: int = 0
    """The position of the last event inside."""
    events: int = 0
    taken_back: int = 0
    """Events that are dated before the moment and still outside."""


@dataclass
class CutLog:
    """The part of one service's log that is inside the cut."""

    service: str
    connection: Connection
    cut: Cut
    reach: Reach = field(default_factory=Reach)

    async def values(self) -> AsyncIterator[tuple[str, bytes]]:
        """Yields stream and value of each event, stream by stream, and counts in `reach`. Memory stays flat."""
        reach, current, following = self.reach, "", 0
        query = _in_schema(EVENTS, self.service)
        rows = self.connection.cursor(query, self.cut.at, prefetch=ROWS_PREFETCHED, timeout=QUERY_SECONDS)
        async for position, stream_id, version, value in rows:
            if stream_id != current:
                current, following = stream_id, 1
            if version != following or version >= self.cut.ends.get(stream_id, NO_END):
                reach.taken_back += 1
                continue
            following += 1
            reach.events += 1
            reach.position = max(reach.position, position)
            yield stream_id, value


@asynccontextmanager
async def open_snapshot(stores: Stores) -> AsyncIterator[Connection]:
    """Opens a read-only transaction that sees all services as of one moment of the database while the shop goes on."""
    pool = next(iter(stores.values())).pool
    async with pool.acquire() as connection, connection.transaction(isolation="repeatable_read", readonly=True):
        yield connection


async def find_cut(connection: Connection, services: Collection[str], at: datetime) -> Cut:
    """Finds the cut at a moment: moves the ends of streams back until every effect inside has its cause inside."""
    later = " UNION ALL ".join(
        _in_schema("SELECT event_id::text AS id FROM {events} WHERE time > $1", service) for service in services
    )

    async def fetch_everywhere(query: str, *arguments: Any) -> list[Any]:
        found: list[Any] = []
        for service in services:
            found += await connection.fetch(_in_schema(query, service), *arguments, timeout=QUERY_SECONDS)
        return found

    ends: dict[str, int] = {}
    outside = await fetch_everywhere(OUT_OF_ORDER, at)
    outside += await fetch_everywhere(EFFECTS_OF_LATER.replace("{later}", later), at)
    while moved := _move_ends_back(ends, outside):
        ids = [row[0] for row in await fetch_everywhere(IDS, at, *moved)]
        outside = await fetch_everywhere(EFFECTS_OF_THESE, at, ids)
    return Cut(at, ends)


def _move_ends_back(ends: dict[str, int], outside: Iterable[Any]) -> tuple[list[str], list[int], list[int]] | None:
    """Moves ends back to versions that are outside, and returns what is newly outside: streams, first version, end
    before. Returns None when nothing moved.
    """
    moved: dict[str, int] = {}
    for stream_id, first in outside:
        if first < (before := ends.get(stream_id, NO_END)):
            moved.setdefault(stream_id, before)
            ends[stream_id] = first
    return (list(moved), [ends[stream_id] for stream_id in moved], list(moved.values())) if moved else None


def _in_schema(query: str, service: str) -> str:
    return query.replace("{events}", f'"{service}".events')
