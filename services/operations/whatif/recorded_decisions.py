"""Reads the decisions of one service back from its event store, each with the state it was made on."""

from collections.abc import AsyncIterator, Callable, Sequence
from datetime import datetime
from typing import NamedTuple

import asyncpg

from services.common.recorded_decision import RecordedDecision
from services.operations.reading.stores import Store, Stores
from shared.messaging.incoming import ROW_COLUMNS, Incoming
from shared.service import Service

ROWS_PER_QUERY = 5_000
QUERY_SECONDS = 600.0

READ = """
SELECT stream_id, version, time, actor, causation_id, value FROM events
WHERE (stream_id, version) > ($1, $2) AND ($4::text[] IS NULL OR stream_id = ANY($4))
ORDER BY stream_id, version LIMIT $3
"""
CAUSES = f"""
SELECT {ROW_COLUMNS} FROM events
WHERE event_id = ANY($1::uuid[])
"""
STREAMS_IN_WINDOW = "SELECT DISTINCT stream_id FROM events WHERE time BETWEEN coalesce($1, time) AND coalesce($2, time)"


class Window(NamedTuple):
    """A period of time; None leaves that end open."""

    start: datetime | None = None
    end: datetime | None = None

    def contains(self, moment: datetime) -> bool:
        return (self.start is None or moment >= self.start) and (self.end is None or moment <= self.end)


async def read_decisions(
    store: Store, window: Window, on_read: Callable[[str, int], None]
) -> AsyncIterator[RecordedDecision]:
    """Yields each run of events that were recorded together, with the state before them.

    `on_read` is called with the service's name and the number of events after each query.
    """
    decider, decoder = store.decider, store.decoder
    state, current = decider.initial, None
    async for row in _read_events(store, window, on_read):
        if current is None or not _belongs_to(row, current):
            if current and window.contains(current.time):
                yield current
            if current is None or row["stream_id"] != current.stream_id:
                state = decider.initial
            stream_id, version, time, actor, causation_id, _ = row
            current = RecordedDecision(stream_id, version, time, actor, causation_id, state, [])
        event = await decoder.decode(row["value"])
        current.events.append(event)
        if decoder.is_old(row["value"]):
            current.has_old_schema = True
        state = decider.evolve(state, event)
    if current and window.contains(current.time):
        yield current


async def _read_events(
    store: Store, window: Window, on_read: Callable[[str, int], None]
) -> AsyncIterator[asyncpg.Record]:
    """Yields all events of the streams that changed in the window, stream by stream: a state needs all of them."""
    pool, after, version = store.pool, "", 2**31 - 1
    streams = None
    if window.start or window.end:
        streams = [row[0] for row in await pool.fetch(STREAMS_IN_WINDOW, *window, timeout=QUERY_SECONDS)]
    while rows := await pool.fetch(READ, after, version, ROWS_PER_QUERY, streams, timeout=QUERY_SECONDS):
        for row in rows:
            yield row
        after, version = rows[-1]["stream_id"], rows[-1]["version"]
        on_read(store.service, len(rows))


def _belongs_to(row: asyncpg.Record, decision: RecordedDecision) -> bool:
    """Tells whether the event is of that decision: the clock is read once for all events of one."""
    known = decision.stream_id, decision.time, decision.actor, decision.causation_id
    return (row["stream_id"], row["time"], row["actor"], row["causation_id"]) == known


async def read_causes(stores: Stores, reacting: Service, event_ids: Sequence[str]) -> dict[str, Incoming]:
    """Returns the events with these ids, by id, as the reacting service would receive them from their topics."""
    topics = {topic for reaction in reacting.reactions for topic in reaction.topics}
    found: dict[str, Incoming] = {}
    for store in stores.values():
        topic = store.decider.topic
        if topic in topics:
            wanted = [event_id for event_id in event_ids if len(event_id) == 36]
            for row in await store.pool.fetch(CAUSES, wanted, timeout=QUERY_SECONDS):
                found[row["event_id"]] = await _incoming(stores[reacting.name], row, topic)
    return found


async def _incoming(reacting: Store, row: asyncpg.Record, topic: str) -> Incoming:
    """Decodes the event as the reacting service does: into plain fields, by its schema alone."""
    data = await reacting.decoder.decode(row["value"])
    return Incoming.from_row(row, reacting.decoder.type_of(row["value"]), data, topic)
