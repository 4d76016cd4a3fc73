"""Either log rebuilds the other: an empty store is filled from its topic, a lost topic from its store."""

import logging
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from uuid import UUID

import asyncpg
from aiokafka import AIOKafkaConsumer, ConsumerRecord, TopicPartition

from shared.codec import Undecodable, schema_id_of
from shared.database import Connection, Pool
from shared.envelope import Recorded, cloud_event_headers, from_cloud_event, pack_headers
from shared.errors import OperatorError
from shared.kafka import client_options, open_admin
from shared.relay import open_producer, publish, relay_lock
from shared.settings import Settings
from shared.store import EVENT_COLUMNS, columns

log = logging.getLogger(__name__)

CHUNK = 5_000
MAX_VERSION = 2**31 - 1

GIVEN = """
unnest($1::text[], $2::int[], $3::uuid[], $4::text[], $5::timestamptz[],
       $6::text[], $7::text[], $8::text[], $9::text[], $10::bytea[])
"""
# Without outbox rows: these events have been published. Where a version comes twice, the first one counts,
# as it did for everyone else who read the topic.
REFILL = f"""
INSERT INTO events (stream_id, version, event_id, type, time, correlation_id, causation_id, actor, traceparent, value)
SELECT * FROM {GIVEN}
ON CONFLICT (stream_id, version) DO NOTHING
"""
CONTRADICTIONS = f"""
SELECT given.stream_id, given.version
FROM {GIVEN} given (stream_id, version, event_id, type, time, correlation_id, causation_id, actor, traceparent, value)
JOIN events USING (stream_id, version)
WHERE (given.event_id, given.value) <> (events.event_id, events.value)
"""
HOLES = "SELECT stream_id FROM events GROUP BY stream_id HAVING max(version) <> count(*) LIMIT 3"
# Which moments the streams had set was in the database that was lost: each is asked once, and says when to look again.
LOOK_AT_ALL = """
INSERT INTO deadlines (stream_id, due, version) SELECT stream_id, now(), max(version) FROM events GROUP BY stream_id
"""


async def refill_if_empty(pool: Pool, settings: Settings, service: str, topic: str, has_deadlines: bool = False) -> int:
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
        if holes := [row[0] for row in await connection.fetch(HOLES)]:
            raise OperatorError(
                f"{topic} cannot refill the store: versions are missing in it, of {', '.join(holes)}.",
                "Restore the database from a backup, or the topic from another cluster.",
            )
        if has_deadlines:
            await connection.execute(LOOK_AT_ALL)
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
            log.warning("not an event of ours, left out", extra=where | {"error": repr(error)})
    if not events:
        return 0
    inserted = int((await connection.execute(REFILL, *columns(events, 10))).rpartition(" ")[2])
    if inserted < len(events):
        for stream_id, version in await connection.fetch(CONTRADICTIONS, *columns(events, 10)):
            log.error("two different events of one version, the first is kept", extra={"at": f"{stream_id}@{version}"})
    return inserted


def _event(record: ConsumerRecord) -> Recorded:
    """As it was stored once. Raises for what nobody of us can have written."""
    schema_id_of(record.value or b"")
    event = from_cloud_event(dict(record.headers), record.value)
    UUID(event.event_id)
    if not 1 <= event.version <= MAX_VERSION or any(b"\0" in value for _, value in record.headers):
        raise ValueError("no row can hold it")
    return event


async def republish(pool: Pool, settings: Settings, service: str, topic: str, source: str) -> int:
    """Fill an empty topic from the store, in position order, under the relay's lock so that nothing overtakes."""
    async with (
        pool.acquire() as connection,
        relay_lock(connection, service),
        open_producer(settings) as producer,
        # One view of the store: what is committed later is in the outbox, and follows when the relay has its lock
        # again. What is in the outbox already goes out here, and must not go out twice.
        connection.transaction(isolation="repeatable_read"),
    ):
        if not await is_empty(settings, topic):
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
        await connection.execute("DELETE FROM outbox WHERE topic = $1", topic)
        return sent


def _message(row: asyncpg.Record, topic: str, source: str) -> tuple[int, str, str, bytes, bytes, object]:
    event = Recorded(*row[1:])
    headers = pack_headers(cloud_event_headers(event, source))
    return row[0], topic, event.stream_id, event.value, headers, event.time


async def is_empty(settings: Settings, topic: str) -> bool:
    async with open_reader(settings, topic) as consumer:
        partitions = consumer.assignment()
        return bool(await consumer.beginning_offsets(partitions) == await consumer.end_offsets(partitions))


async def read_topic(settings: Settings, topic: str) -> AsyncIterator[list[ConsumerRecord]]:
    """Everything in the topic up to its end as of now, in chunks, each partition in order."""
    async with open_reader(settings, topic) as consumer:
        partitions = consumer.assignment()
        ends = await consumer.end_offsets(partitions)
        while any([await consumer.position(partition) < ends[partition] for partition in partitions]):
            for partition, records in (await consumer.getmany(timeout_ms=500, max_records=CHUNK)).items():
                if wanted := [record for record in records if record.offset < ends[partition]]:
                    yield wanted


@asynccontextmanager
async def open_reader(settings: Settings, topic: str) -> AsyncIterator[AIOKafkaConsumer]:
    """A consumer of the whole topic, outside of any group."""
    # Asked for here, because a consumer that subscribes to a topic that is missing waits for it for long.
    async with open_admin(settings) as admin:
        if topic not in await admin.list_topics():
            raise OperatorError(f"The topic {topic} does not exist.", "Create the topics with: till up")
        [described] = await admin.describe_topics([topic])
    consumer = AIOKafkaConsumer(**client_options(settings), enable_auto_commit=False, auto_offset_reset="earliest")
    try:
        await consumer.start()
        consumer.assign([TopicPartition(topic, partition["partition"]) for partition in described["partitions"]])
        yield consumer
    finally:
        await consumer.stop()
