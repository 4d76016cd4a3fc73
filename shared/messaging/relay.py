"""Takes committed messages from the outbox to Kafka, in order, and deletes exactly what was acknowledged."""

import asyncio
import logging
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager, suppress
from typing import Any, NamedTuple

import asyncpg
from aiokafka import AIOKafkaProducer
from aiokafka.errors import KafkaError
from aiokafka.producer.message_accumulator import BatchBuilder

from shared.cancellation import heed_cancellation
from shared.crashpoints import crashpoint
from shared.database import AWAY, Connection, Pool, listening
from shared.envelope import millis, unpack_headers
from shared.kafka import client_options
from shared.partitions import partition_of
from shared.settings import Settings

log = logging.getLogger(__name__)

ROUND = 5_000
BATCH_BYTES = 900_000
IDLE_SECONDS = 1.0
RETRY_SECONDS = 1.0

# Everything that is there, lowest position first. Never `position > last`: a transaction that took a lower
# position may commit later than one that took a higher, and its messages would be passed over for ever.
TAKE = """
SELECT position, topic, key, value, headers, time FROM outbox
WHERE position <> ALL($1::bigint[]) ORDER BY position LIMIT $2
"""
DELETE = "DELETE FROM outbox WHERE position = ANY($1::bigint[])"


class Batch(NamedTuple):
    """For one partition."""

    builder: BatchBuilder
    positions: list[int]
    """Of its messages, in the outbox."""


Batches = dict[tuple[str, int], Batch]
"""By topic and partition."""
Sent = Sequence[tuple[Batch, "asyncio.Future[Any]"]]
"""With what Kafka will answer."""


class Relay:
    """One per service at a time (by advisory lock); others stand by and take over when it dies."""

    def __init__(self, pool: Pool, settings: Settings, service: str) -> None:
        self._pool = pool
        self._settings = settings
        self._service = service
        self._wake = asyncio.Event()
        self.published = 0

    async def run(self) -> None:
        """Until cancelled. Whatever fails (a broker, the database) is waited out: the outbox keeps it all."""
        while True:
            heed_cancellation()
            try:
                async with self._the_only_one() as connection, open_producer(self._settings) as producer:
                    await self._publish_for_ever(connection, producer)
            except (*AWAY, asyncpg.PostgresError, KafkaError) as error:
                log.warning(
                    "relay interrupted, it tries again",
                    extra={"service": self._service, "error": repr(error)},
                )
                await asyncio.sleep(RETRY_SECONDS)

    async def drained(self) -> None:
        """Wait until the outbox is empty."""
        while await self._pool.fetchval("SELECT EXISTS (SELECT FROM outbox)"):
            await asyncio.sleep(0.01)

    @asynccontextmanager
    async def _the_only_one(self) -> AsyncIterator[Connection]:
        async with (
            self._pool.acquire() as connection,
            relay_lock(connection, self._service),
            listening(connection, f"outbox_{self._service}", self._notified),
        ):
            yield connection

    def _notified(self, *_: object) -> None:
        self._wake.set()

    async def _publish_for_ever(self, connection: Connection, producer: AIOKafkaProducer) -> None:
        batches = await self._take(connection, producer)
        while True:
            heed_cancellation()
            if not batches:
                await self._woken()
                batches = await self._take(connection, producer)
                continue
            # Committed, not sent: after a death here the next relay finds the same rows. Nothing lost.
            crashpoint("committed, not sent")
            sent = await send(producer, batches)
            following = await self._take(connection, producer, sent)  # while Kafka stores what was sent
            acknowledged, failure = await answers(sent)
            # Sent, not deleted: after a death here they are sent again, byte for byte. Consumers see a duplicate.
            crashpoint("sent, not deleted")
            await connection.execute(DELETE, acknowledged)
            self.published += len(acknowledged)
            if failure:
                raise failure
            batches = following

    async def _take(self, connection: Connection, producer: AIOKafkaProducer, under_way: Sent = ()) -> Batches:
        self._wake.clear()
        positions = [position for batch, _ in under_way for position in batch.positions]
        return await pack(producer, await connection.fetch(TAKE, positions, ROUND))

    async def _woken(self) -> None:
        with suppress(TimeoutError):
            async with asyncio.timeout(IDLE_SECONDS):  # a NOTIFY can be missed while reconnecting
                await self._wake.wait()


@asynccontextmanager
async def relay_lock(connection: Connection, service: str) -> AsyncIterator[None]:
    """The lock lives in the connection that reads and deletes: who loses it can delete nothing any more."""
    while not await connection.fetchval("SELECT pg_try_advisory_lock(hashtext($1))", f"relay {service}"):
        await asyncio.sleep(RETRY_SECONDS)
    try:
        yield
    finally:
        with suppress(asyncpg.InterfaceError):  # it is gone already
            connection.terminate()  # and its lock with it: back in the pool, it would be nobody's


@asynccontextmanager
async def open_producer(settings: Settings) -> AsyncIterator[AIOKafkaProducer]:
    producer = AIOKafkaProducer(
        **client_options(settings),
        enable_idempotence=True,
        acks="all",
        max_batch_size=BATCH_BYTES,
        request_timeout_ms=10_000,
    )
    try:
        await producer.start()
        yield producer
    finally:
        # An idempotent producer never gives a batch up. The store has it all, so we need not wait for it.
        with suppress(TimeoutError):
            async with asyncio.timeout(5):
                await producer.stop()


async def publish(producer: AIOKafkaProducer, rows: Sequence[Any]) -> tuple[list[int], KafkaError | None]:
    """The positions that were acknowledged (of what is too much for a batch, none are), and what went wrong, if so."""
    return await answers(await send(producer, await pack(producer, rows)))


async def pack(producer: AIOKafkaProducer, rows: Sequence[Any]) -> Batches:
    """One batch for each partition. What is too much for it is left for the next."""
    batches: Batches = {}
    partitions: dict[str, int] = {}
    full: set[tuple[str, int]] = set()
    for position, topic, key, value, headers, time in rows:
        if topic not in partitions:
            partitions[topic] = len(await producer.partitions_for(topic))
        target = topic, partition_of(key, partitions[topic])
        if target in full:
            continue
        if target not in batches:
            batches[target] = Batch(producer.create_batch(), [])
        builder, positions = batches[target]
        added = builder.append(timestamp=millis(time), key=key.encode(), value=value, headers=unpack_headers(headers))
        if added is None:
            full.add(target)
        else:
            positions.append(position)
    return batches


async def send(producer: AIOKafkaProducer, batches: Batches) -> Sent:
    """One batch to each partition, and no more before the answers are there: were a second in flight, it could arrive
    although the first did not, and the retry would break the order of a stream.
    """
    return [
        (batch, await producer.send_batch(batch.builder, topic, partition=partition))
        for (topic, partition), batch in batches.items()
    ]


async def answers(sent: Sent) -> tuple[list[int], KafkaError | None]:
    """The positions that were acknowledged, and what went wrong, if anything."""
    results = await asyncio.gather(*(answer for _, answer in sent), return_exceptions=True)
    acknowledged: list[int] = []
    failure: KafkaError | None = None
    for (batch, _), result in zip(sent, results, strict=True):
        if isinstance(result, BaseException):
            failure = result if isinstance(result, KafkaError) else KafkaError(result)
        else:
            acknowledged += batch.positions
    return acknowledged, failure
