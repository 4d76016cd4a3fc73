"""Refills an empty event store from its topic. The other direction is `republish.py`."""

import logging
from collections.abc import Sequence
from uuid import UUID

from aiokafka import ConsumerRecord

from shared.envelope import Recorded, from_cloud_event
from shared.errors import OperatorError
from shared.messaging.topic_reader import read_topic
from shared.schemas.codec import Undecodable, schema_id_of
from shared.settings import Settings
from shared.store.database import Connection, Pool
from shared.store.event_store import MAX_VERSION, STORED_COLUMNS, STORED_ROWS, columns

log = logging.getLogger(__name__)

# Without outbox rows: these events have been published. If a version occurs twice, the first one counts,
# as it did for every other reader of the topic.
REFILL = f"""
INSERT INTO events ({STORED_COLUMNS}) SELECT * FROM {STORED_ROWS}
ON CONFLICT (stream_id, version) DO NOTHING
"""
CONTRADICTIONS = f"""
SELECT given.stream_id, given.version
FROM {STORED_ROWS} given ({STORED_COLUMNS})
JOIN events USING (stream_id, version)
WHERE (given.event_id, given.value) <> (events.event_id, events.value)
"""
HOLES = "SELECT stream_id FROM events GROUP BY stream_id HAVING max(version) <> count(*) LIMIT 3"
# The deadlines were in the database that was lost. Each stream gets one now, and then sets its next one itself.
DEADLINE_FOR_ALL = """
INSERT INTO deadlines (stream_id, due, version) SELECT stream_id, now(), max(version) FROM events GROUP BY stream_id
"""


async def refill_if_empty(pool: Pool, settings: Settings, service: str, topic: str, has_deadlines: bool = False) -> int:
    """Fills an empty store from its topic and returns the number of events.

    A service that lost its database and started empty would write version 1 of streams that exist. The refill is one
    transaction: after a death, the next start finds the store empty again.
    """
    async with pool.acquire() as connection, connection.transaction():
        await connection.execute("SELECT pg_advisory_xact_lock(hashtext($1))", f"refill {service}")
        if await connection.fetchval("SELECT EXISTS (SELECT FROM events)"):
            return 0
        filled = 0
        async for records in read_topic(settings, topic):
            filled += await _store(connection, records)
        if holes := [row[0] for row in await connection.fetch(HOLES)]:
            raise OperatorError(
                f"{topic} cannot refill the store: it lacks versions of {', '.join(holes)}.",
                "Restore the database from a backup, or the topic from another cluster.",
            )
        if has_deadlines:
            await connection.execute(DEADLINE_FOR_ALL)
        if filled:
            log.info("store refilled from its topic", extra={"service": service, "topic": topic, "events": filled})
        return filled


async def _store(connection: Connection, records: Sequence[ConsumerRecord]) -> int:
    events = []
    for record in records:
        try:
            events.append(_event(record))
        except (KeyError, ValueError, AttributeError, Undecodable) as error:
            where = {"topic": record.topic, "partition": record.partition, "offset": record.offset}
            log.warning("not an event of this service, left out", extra=where | {"error": repr(error)})
    if not events:
        return 0
    inserted = int((await connection.execute(REFILL, *columns(events, 10))).rpartition(" ")[2])
    if inserted < len(events):
        for stream_id, version in await connection.fetch(CONTRADICTIONS, *columns(events, 10)):
            log.error(
                "two different events with one version, the first is kept", extra={"at": f"{stream_id}@{version}"}
            )
    return inserted


def _event(record: ConsumerRecord) -> Recorded:
    """Returns the event as it was stored; raises if the record cannot have been written by this service."""
    schema_id_of(record.value or b"")
    event = from_cloud_event(dict(record.headers), record.value)
    UUID(event.event_id)
    if not 1 <= event.version <= MAX_VERSION or any(b"\0" in value for _, value in record.headers):
        raise ValueError("no row can hold it")
    return event
