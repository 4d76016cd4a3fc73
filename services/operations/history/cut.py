"""A cut through the rolls of all services: what had happened at a moment, and no effect without its cause.

The clocks of services may disagree: an answer may be dated before its question. So the moment alone is not enough;
what has a cause outside of the cut is taken back, and what came of that, and so on.
"""

from collections.abc import AsyncIterator, Iterable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, NamedTuple

from services.replay.rolls import CATEGORIES, Rolls
from shared.database import Connection

PREFETCH = 2000
NO_HURRY = 3600.0

# A stream's past ends before its first event that was still to come, whatever the dates of later ones say.
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
EVERY_VERSION = 2**31 - 1


class Cut(NamedTuple):
    at: datetime
    ends: dict[str, int]
    """By stream, the first version that is out although its date is not."""


@dataclass
class Reach:
    """How far the cut goes in the roll of one service."""

    position: int = 0
    """Of its last event that is in."""
    events: int = 0
    taken_back: int = 0
    """Dated before the moment, and not in it."""


@dataclass
class Slice:
    """The part of one roll that is in the cut, one stream after the other."""

    category: str
    connection: Connection
    cut: Cut
    reach: Reach = field(default_factory=Reach)

    async def values(self) -> AsyncIterator[tuple[str, bytes]]:
        """Each stream's events from its first on; memory stays flat."""
        reach, current, following = self.reach, "", 0
        rows = self.connection.cursor(_on(EVENTS, self.category), self.cut.at, prefetch=PREFETCH, timeout=NO_HURRY)
        async for position, stream_id, version, value in rows:
            if stream_id != current:
                current, following = stream_id, 1
            if version != following or version >= self.cut.ends.get(stream_id, EVERY_VERSION):
                reach.taken_back += 1
                continue
            following += 1
            reach.events += 1
            reach.position = max(reach.position, position)
            yield stream_id, value


@asynccontextmanager
async def one_view(rolls: Rolls) -> AsyncIterator[Connection]:
    """All services as of one moment of the database, while the shop goes on; nothing can be written through it."""
    pool = next(iter(rolls.values())).pool
    async with pool.acquire() as connection, connection.transaction(isolation="repeatable_read", readonly=True):
        yield connection


async def cut_at(connection: Connection, at: datetime) -> Cut:
    later = " UNION ALL ".join(
        _on("SELECT event_id::text AS id FROM {events} WHERE time > $1", category) for category in CATEGORIES
    )
    ends: dict[str, int] = {}
    out = await _everywhere(connection, OUT_OF_ORDER, at)
    out += await _everywhere(connection, EFFECTS_OF_LATER.replace("{later}", later), at)
    while moved := _shorten(ends, out):
        ids = [row[0] for row in await _everywhere(connection, IDS, at, *moved)]
        out = await _everywhere(connection, EFFECTS_OF_THESE, at, ids)
    return Cut(at, ends)


async def _everywhere(connection: Connection, query: str, *arguments: Any) -> list[Any]:
    """What the rolls of all services answer."""
    found: list[Any] = []
    for category in CATEGORIES:
        found += await connection.fetch(_on(query, category), *arguments, timeout=NO_HURRY)
    return found


def _shorten(ends: dict[str, int], out: Iterable[Any]) -> tuple[list[str], list[int], list[int]] | None:
    """Move the ends of streams back. What is newly out: streams, from which version, before which; None for nothing."""
    was: dict[str, int] = {}
    for stream_id, first in out:
        if first < (before := ends.get(stream_id, EVERY_VERSION)):
            was.setdefault(stream_id, before)
            ends[stream_id] = first
    return (list(was), [ends[stream_id] for stream_id in was], list(was.values())) if was else None


def _on(query: str, category: str) -> str:
    return query.replace("{events}", f'"{CATEGORIES[category].service}".events')
