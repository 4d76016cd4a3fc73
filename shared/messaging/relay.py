"""The relay of the transactional outbox: publishes committed rows to Kafka, in order, at least once.

1. A service writes events and outbox rows in one transaction, so nothing is published that was not committed, and
   everything committed is published eventually.
2. The relay takes the rows that exist, lowest position first, sends one batch per partition with an idempotent
   producer (acks=all), and deletes exactly the rows that Kafka acknowledged.
3. One relay per service at a time, by an advisory lock in the connection that reads and deletes: a relay that loses
   its connection loses its lock, and can delete nothing any more (fencing).

A death between sending and deleting publishes rows twice, byte for byte the same; consumers are idempotent.
"""

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
from shared.envelope import millis, unpack_headers
from shared.messaging.kafka import client_options
from shared.messaging.partitions import partition_of
from shared.recovery.crash_points import crashpoint
from shared.settings import Settings
from shared.store.database import CONNECTION_ERRORS, Connection, Pool, listening

log = logging.getLogger(__name__)

ROWS_PER_ROUND = 5_000
MAX_BATCH_BYTES = 900_000
IDLE_SECONDS = 1.0
RETRY_SECONDS = 1.0

# All rows that exist, lowest position first. Never a cursor (`position > last`): a transaction that took a lower
# position may commit after one that took a higher, and its messages would be skipped forever.
TAKE = """
SELECT position, topic, key, value, headers, time FROM outbox
WHERE position <> ALL($1::bigint[]) ORDER BY position LIMIT $2
"""
DELETE = "DELETE FROM outbox WHERE position = ANY($1::bigint[])"


class Batch(NamedTuple):
    """The messages for one partition."""

    builder: BatchBuilder
    positions: list[int]
    """The positions of its messages in the outbox."""


Batches = dict[tuple[str, int], Batch]
"""Batches by topic and partition."""
Sent = Sequence[tuple[Batch, "asyncio.Future[Any]"]]
"""Batches in flight, each with the future of its acknowledgement."""


class Relay:
    """Publishes the outbox of one service. One relay works at a time; others stand by and take over when it dies."""

    def __init__(self, pool: Pool, settings: Settings, service: str) -> None:
        self._pool = pool
        self._settings = settings
        self._service = service
        self._wake = asyncio.Event()
        self.published = 0

    async def run(self) -> None:
        """Publishes until cancelled. If a broker or the database fails, it waits: the outbox keeps everything."""
        while True:
            heed_cancellation()
            try:
                async with self._lock_and_listen() as connection, open_producer(self._settings) as producer:
                    await self._publish_forever(connection, producer)
            except (*CONNECTION_ERRORS, asyncpg.PostgresError, KafkaError) as error:
                log.warning(
                    "relay interrupted, it tries again",
                    extra={"service": self._service, "error": repr(error)},
                )
                await asyncio.sleep(RETRY_SECONDS)

    async def wait_until_drained(self) -> None:
        """Waits until the outbox is empty."""
        while await self._pool.fetchval("SELECT EXISTS (SELECT FROM outbox)"):
            await asyncio.sleep(0.01)

    @asynccontextmanager
    async def _lock_and_listen(self) -> AsyncIterator[Connection]:
        async with (
            self._pool.acquire() as connection,
            relay_lock(connection, self._service),
            listening(connection, f"outbox_{self._service}", self._notified),
        ):
            yield connection

    def _notified(self, *_: object) -> None:
        self._wake.set()

    async def _publish_forever(self, connection: Connection, producer: AIOKafkaProducer) -> None:
        batches = await self._take(connection, producer)
        while True:
            heed_cancellation()
            if not batches:
                await self._wait_for_rows()
                batches = await self._take(connection, producer)
                continue
            # Committed, not sent: after a death here the next relay finds the same rows. Nothing is lost.
            crashpoint("committed, not sent")
            sent = await send(producer, batches)
            following = await self._take(connection, producer, sent)  # while Kafka stores what was sent
            acknowledged, failure = await acknowledgements(sent)
            # Sent, not deleted: after a death here they are sent again, byte for byte. Consumers see duplicates.
            crashpoint("sent, not deleted")
            await connection.execute(DELETE, acknowledged)
            self.published += len(acknowledged)
            if failure:
                raise failure
            batches = following

    async def _take(self, connection: Connection, producer: AIOKafkaProducer, in_flight: Sent = ()) -> Batches:
        """Takes the next rows, except those in flight, and packs them into batches."""
        self._wake.clear()
        positions = [position for batch, _ in in_flight for position in batch.positions]
        return await pack(producer, await connection.fetch(TAKE, positions, ROWS_PER_ROUND))

    async def _wait_for_rows(self) -> None:
        with suppress(TimeoutError):
            async with asyncio.timeout(IDLE_SECONDS):  # a NOTIFY can be missed while reconnecting
                await self._wake.wait()


@asynccontextmanager
async def relay_lock(connection: Connection, service: str) -> AsyncIterator[None]:
    """Holds the relay's lock in the connection that reads and deletes: losing the lock means losing both."""
    while not await connection.fetchval("SELECT pg_try_advisory_lock(hashtext($1))", f"relay {service}"):
        await asyncio.sleep(RETRY_SECONDS)
    try:
        yield
    finally:
        with suppress(asyncpg.InterfaceError):  # the connection is gone already
            connection.terminate()  # and its lock with it: back in the pool, it would hold the lock forever


@asynccontextmanager
async def open_producer(settings: Settings) -> AsyncIterator[AIOKafkaProducer]:
    producer = AIOKafkaProducer(
        **client_options(settings),
        enable_idempotence=True,
        acks="all",
        max_batch_size=MAX_BATCH_BYTES,
        request_timeout_ms=10_000,
    )
    try:
        await producer.start()
        yield producer
    finally:
        # An idempotent producer never gives up on a batch. The outbox still has the rows, so it need not be waited for.
        with suppress(TimeoutError):
            async with asyncio.timeout(5):
                await producer.stop()


async def publish(producer: AIOKafkaProducer, rows: Sequence[Any]) -> tuple[list[int], KafkaError | None]:
    """Sends rows and returns the positions that were acknowledged, and the failure if there was one.

    Rows that do not fit into a batch are not sent: they are not among the positions, and the caller sends them next.
    """
    return await acknowledgements(await send(producer, await pack(producer, rows)))


async def pack(producer: AIOKafkaProducer, rows: Sequence[Any]) -> Batches:
    """Packs rows into one batch per partition. Rows that do not fit are left for the next round."""
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
    """Sends one batch to each partition.

    The next one must wait for the acknowledgements: with two in flight, the second could arrive although the first did
    not, and the retry would break the order of a stream.
    """
    return [
        (batch, await producer.send_batch(batch.builder, topic, partition=partition))
        for (topic, partition), batch in batches.items()
    ]


async def acknowledgements(sent: Sent) -> tuple[list[int], KafkaError | None]:
    """Waits for Kafka, and returns the acknowledged positions, and the failure if there was one."""
    results = await asyncio.gather(*(future for _, future in sent), return_exceptions=True)
    acknowledged: list[int] = []
    failure: KafkaError | None = None
    for (batch, _), result in zip(sent, results, strict=True):
        if isinstance(result, BaseException):
            failure = result if isinstance(result, KafkaError) else KafkaError(result)
        else:
            acknowledged += batch.positions
    return acknowledged, failure
