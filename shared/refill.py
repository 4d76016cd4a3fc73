"""Either log rebuilds the other: an empty store is filled from its topic, a lost topic from its store."""

import logging
from collections.abc import AsyncIterator, Sequence

import asyncpg
from aiokafka import AIOKafkaConsumer, ConsumerRecord

from shared.database import Connection, Pool
from shared.envelope import Recorded, cloud_event_headers, from_cloud_event, pack_headers
from shared.errors import OperatorError
from shared.kafka import client_options
from shared.relay import open_producer, publish, relay_lock
from shared.settings import Settings
from shared.store import EVENT_COLUMNS, columns

log = logging.getLogger(__name__)

CHUNK = 5_000

# Without outbox rows: these events have been published. A duplicate in the topic is passed over here and
# compared below.
REFILL = """
INSERT INTO events (stream_id, version, event_id, type, time, correlation_id, causation_id, actor, traceparent, value)
SELECT * FROM unnest($1::text[], $2::int[], $3::uuid[], $4::text[], $5::timestamptz[],
                     $6::text[], $7::text[], $8::text[], $9::text[], $10::bytea[])
ON CONFLICT (stream_id, version) DO NOTHING
"""


async def refill_if_empty(pool: Pool, settings: Settings, service: str, topic: str) -> int:
    """A service that lost its database goes on where its topic ends: were it to start empty, it would
    write version 1 of streams that exist. All or nothing: the next start after a death finds it empty again.
    """
    async with pool.acquire() as connection, connection.transaction():
        await connection.execute("SELECT pg_advisory_xact_lock(hashtext($1))", f"refill {service}")
        if await connection.fetchval("SELECT EXISTS (SELECT FROM events)"):
            return 0
        filled = 0
        async for records in read_topic(settings, topic):
            filled += await _store(connection, records)
        if filled:
            log.info("store refilled from its topic", extra={"service": service, "topic": topic, "events": filled})
        return filled


async def _store(connection: Connection, records: Sequence[ConsumerRecord]) -> int:
    events = []
    for record in records:
        headers = dict(record.headers)
        if "ce_subject" not in headers:
            log.warning("not an event, left out", extra={"topic": record.topic, "offset": record.offset})
            continue
        events.append(from_cloud_event(headers, record.value))
    if not events:
        return 0
    inserted = await connection.execute(REFILL, *columns(events, 10))
    return int(inserted.rpartition(" ")[2])


async def republish(pool: Pool, settings: Settings, service: str, topic: str, source: str) -> int:
    """Fill an empty topic from the store, in position order, under the relay's lock so that nothing overtakes."""
    async with (
        pool.acquire() as connection,
        relay_lock(connection, service),
        open_producer(settings) as producer,
    ):
        if any([records async for records in read_topic(settings, topic)]):
            raise OperatorError(
                f"{topic} is not empty: republishing would put every event in it a second time.",
                "Delete the topic and create it again (till topics) if that is what you want.",
            )
        sent, after = 0, 0
        while rows := await connection.fetch(
            f"SELECT position, {EVENT_COLUMNS} FROM events WHERE position > $1 ORDER BY position LIMIT $2",
            after,
            CHUNK,
        ):
            after = rows[-1][0]
            waiting = [_message(row, topic, source) for row in rows]
            while waiting:
                acknowledged, failure = await publish(producer, waiting)
                if failure:
                    raise failure
                done = set(acknowledged)
                waiting = [message for message in waiting if message[0] not in done]
            sent += len(rows)
        return sent


def _message(row: asyncpg.Record, topic: str, source: str) -> tuple[int, str, str, bytes, bytes, object]:
    event = Recorded(*row[1:])
    headers = pack_headers(cloud_event_headers(event, source))
    return row[0], topic, event.stream_id, event.value, headers, event.time


async def read_topic(settings: Settings, topic: str) -> AsyncIterator[list[ConsumerRecord]]:
    """Everything in the topic up to its end as of now, in chunks, each partition in order."""
    # Without a group, every partition of the topic is ours.
    consumer = AIOKafkaConsumer(
        topic, **client_options(settings), enable_auto_commit=False, auto_offset_reset="earliest"
    )
    await consumer.start()
    try:
        partitions = consumer.assignment()
        if not partitions:
            raise OperatorError(f"The topic {topic} does not exist.", "Create the topics with: till up")
        ends = await consumer.end_offsets(partitions)
        while any([await consumer.position(partition) < ends[partition] for partition in partitions]):
            for partition, records in (await consumer.getmany(timeout_ms=500, max_records=CHUNK)).items():
                if wanted := [record for record in records if record.offset < ends[partition]]:
                    yield wanted
    finally:
        await consumer.stop()
