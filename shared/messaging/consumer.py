"""The idempotent consumer: reads topics at least once, and takes effect exactly once, whatever dies.

1. Its offsets are stored in the service's database, in the same transaction as the effects. After a death either both
   exist or neither does; Kafka's own group offsets are not used.
2. Offsets move by compare-and-set. A consumer that lost its partition (a zombie) expects an offset that has moved on
   since, so its transaction is rolled back: it is fenced.
3. A message that cannot be decoded or applied (poison) goes to the dead-letter queue, through the outbox, in the same
   transaction: it never blocks its partition and is never dropped.

A relay that died may have sent a message twice. That is for `apply` to notice, by the versions of streams.
"""

import asyncio
import logging
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import asynccontextmanager

import asyncpg
from aiokafka import AIOKafkaConsumer, ConsumerRecord, TopicPartition
from aiokafka.abc import ConsumerRebalanceListener
from aiokafka.errors import KafkaError

from shared.cancellation import heed_cancellation
from shared.envelope import Message
from shared.messaging.incoming import Incoming, decode_record
from shared.messaging.kafka import client_options
from shared.recovery.crash_points import crashpoint
from shared.recovery.dead_letters import dead_letter
from shared.schemas.decoder import Decoder
from shared.schemas.registry import RegistryUnavailable
from shared.settings import Settings
from shared.store.database import CONNECTION_ERRORS, Connection, Pool, Unavailable
from shared.store.event_store import Conflict, Write, execute

log = logging.getLogger(__name__)

MAX_BATCH_MESSAGES = 1_000
POLL_MS = 500
RETRY_SECONDS = 1.0
CONFLICT_ATTEMPTS = 10

# Failures of the environment, not of the message: wait and try again.
TRANSIENT = (
    *CONNECTION_ERRORS,
    Conflict,
    Unavailable,
    RegistryUnavailable,
    KafkaError,
    asyncpg.TransactionRollbackError,
    asyncpg.InsufficientResourcesError,  # a full disk, no memory
    asyncpg.OperatorInterventionError,
    asyncpg.PostgresSystemError,
    asyncpg.ReadOnlySQLTransactionError,  # a standby, until the failover is done
)

COMPARE_AND_SET = """
UPDATE offsets SET next_offset = reached
FROM unnest($2::text[], $3::int[], $4::bigint[], $5::bigint[]) AS move (of_topic, of_partition, expected, reached)
WHERE consumer = $1 AND topic = of_topic AND partition = of_partition AND next_offset = expected
"""

Apply = Callable[[Connection, Sequence[Incoming]], Awaitable[None]]
"""Writes the effects of messages within the given transaction."""
Batches = Mapping[TopicPartition, list[ConsumerRecord]]


class Fenced(Exception):
    """Another consumer has moved this partition on; the transaction was rolled back."""


class Consumer(ConsumerRebalanceListener):  # type: ignore[misc] # aiokafka has no types
    """One consumer of a service: a read model, or a reaction to events of other services."""

    def __init__(
        self,
        service: str,
        name: str,
        topics: Sequence[str],
        apply: Apply,
        decoder: Decoder,
        pool: Pool,
        settings: Settings,
    ) -> None:
        self.name = f"{service}.{name}"
        self.topics = topics
        self._service = service
        self._apply = apply
        self._decoder = decoder
        self._pool = pool
        self._settings = settings
        self._kafka: AIOKafkaConsumer | None = None
        self._next: dict[TopicPartition, int] = {}
        """The offsets that the database has for the partitions this consumer owns."""

    async def run(self) -> None:
        """Consumes until cancelled, and waits for whatever is unavailable."""
        while True:
            heed_cancellation()
            try:
                async with self._joined_group() as kafka:
                    while True:
                        heed_cancellation()
                        batches = await kafka.getmany(timeout_ms=POLL_MS, max_records=MAX_BATCH_MESSAGES)
                        await self._consume(kafka, batches)
            except TRANSIENT as error:
                log.warning(
                    "consumer interrupted, it tries again",
                    extra={"consumer": self.name, "error": repr(error)},
                )
                await asyncio.sleep(RETRY_SECONDS)

    async def _consume(self, kafka: AIOKafkaConsumer, batches: Batches) -> None:
        owned = {partition: records for partition, records in batches.items() if partition in self._next}
        for partition in batches.keys() - owned.keys():  # fetched before its stored offset was looked up
            await self._seek_to_stored_offset(partition)
        try:
            await self._apply_or_isolate(owned)
        except TRANSIENT:
            # Back to the stored offset, or the records that were not applied would be skipped.
            for partition in owned.keys() & kafka.assignment() & self._next.keys():
                kafka.seek(partition, self._next[partition])
            raise

    async def _apply_or_isolate(self, batches: Batches) -> None:
        """Applies all partitions in one transaction, to save round trips; if that fails, each in its own."""
        if len(batches) > 1 and await self._apply_together(batches):
            return
        for partition, records in batches.items():
            try:
                await self._apply_partition(partition, records)
            except Fenced:
                log.info(  # normal in a rebalance: these records were read before the partition changed hands
                    "fenced: another consumer has this partition",
                    extra={"consumer": self.name, "partition": partition},
                )
                await self._seek_to_stored_offset(partition)

    async def _apply_together(self, batches: Batches) -> bool:
        """Applies all partitions in one transaction and returns True, or changes nothing and returns False."""
        try:
            return await self._try_apply(batches) is None
        except Fenced:  # from at least one of the partitions
            return False

    async def _apply_partition(self, partition: TopicPartition, records: list[ConsumerRecord]) -> None:
        """Applies the records of one partition; if one is poison, finds it and sends it to the dead-letter queue."""
        if await self._try_apply({partition: records}) is None:
            return
        for record in records:
            if error := await self._try_apply({partition: [record]}):
                await self._commit({partition: [record]}, [], [self._dead_letter(record, error)])

    async def _try_apply(self, batches: Batches) -> Exception | None:
        """Applies the batches in one transaction; if that fails because of them, returns the error and changes nothing.

        The error is returned, not raised: raised, it would become the context of the next one, in its dead letter.
        """
        for attempt in range(CONFLICT_ATTEMPTS):
            try:
                messages, dead_letters = await self._decode(batches)
                await self._commit(batches, messages, dead_letters)
                break
            except Conflict:  # another writer appended to the same stream: decide again, on what is stored now
                if attempt == CONFLICT_ATTEMPTS - 1:
                    raise
            except (Fenced, *TRANSIENT) as error:
                if isinstance(error, ValueError):  # raised by asyncpg for a value that no column can hold
                    return error
                raise
            except Exception as error:  # any other failure is the message's, and is kept with it
                return error
        return None

    async def _decode(self, batches: Batches) -> tuple[list[Incoming], list[Message]]:
        """Returns the decoded messages, and dead letters for the records that cannot be decoded."""
        messages, dead_letters = [], []
        for records in batches.values():
            for record in records:
                try:
                    messages.append(await self.decode(record))
                except TRANSIENT:
                    raise
                except Exception as error:  # undecodable for whatever reason, which is kept
                    dead_letters.append(self._dead_letter(record, error))
        return messages, dead_letters

    async def _commit(self, batches: Batches, messages: Sequence[Incoming], dead_letters: list[Message]) -> None:
        """Moves the offsets, applies the messages and stores the dead letters, in one transaction."""
        # -1 is never stored: the partition was revoked in the meantime.
        expected = {partition: self._next.get(partition, -1) for partition in batches}
        reached = {partition: records[-1].offset + 1 for partition, records in batches.items()}
        if any(records[0].offset < expected[partition] for partition, records in batches.items()):
            raise Fenced  # read before another consumer had the partition and moved it on
        async with self._pool.acquire() as connection, connection.transaction():
            # First, because it also locks the rows: two consumers that both believe they own a partition take turns.
            moved = await connection.execute(
                COMPARE_AND_SET,
                self.name,
                [partition.topic for partition in batches],
                [partition.partition for partition in batches],
                list(expected.values()),
                list(reached.values()),
            )
            if moved != f"UPDATE {len(batches)}":
                raise Fenced
            if messages:
                await self._apply(connection, messages)
            if dead_letters:
                await execute(connection, [Write(messages=dead_letters)])
            # Handled, not committed: after a death here neither the effect nor the offset exists. It is read again.
            crashpoint("handled, not committed")
        self._next.update(reached)

    def _dead_letter(self, record: ConsumerRecord, error: Exception) -> Message:
        log.error(
            "dead letter",
            extra={"consumer": self.name, "topic": record.topic, "offset": record.offset, "error": repr(error)},
        )
        return dead_letter(self._service, self.name, record, error)

    async def decode(self, record: ConsumerRecord) -> Incoming:
        return await decode_record(record, self._decoder)

    async def apply_dead_letter(self, connection: Connection, message: Incoming) -> None:
        """Applies a message from the dead-letter queue, in the caller's transaction."""
        # Take turns with the consumer of the partition: its next message may be about the same row.
        await connection.execute(
            "SELECT FROM offsets WHERE consumer = $1 AND topic = $2 AND partition = $3 FOR UPDATE",
            self.name,
            message.topic,
            message.partition,
        )
        await self._apply(connection, [message])

    @asynccontextmanager
    async def _joined_group(self) -> AsyncIterator[AIOKafkaConsumer]:
        kafka = AIOKafkaConsumer(
            **client_options(self._settings),
            group_id=self.name,
            client_id=self.name,
            enable_auto_commit=False,
            auto_offset_reset="earliest",
            # The shortest time after which a broker lets another consumer take over from one that died silently.
            session_timeout_ms=6_000,
            heartbeat_interval_ms=1_500,
        )
        self._kafka = kafka
        self._next.clear()
        kafka.subscribe(list(self.topics), listener=self)
        try:
            await kafka.start()
            yield kafka
        finally:
            await kafka.stop()

    async def on_partitions_revoked(self, revoked: set[TopicPartition]) -> None:
        for partition in revoked:
            self._next.pop(partition, None)

    async def on_partitions_assigned(self, assigned: set[TopicPartition]) -> None:
        for partition in assigned:
            await self._seek_to_stored_offset(partition)

    async def _seek_to_stored_offset(self, partition: TopicPartition) -> None:
        kafka = self._kafka
        if kafka is None or partition not in kafka.assignment():
            return
        await self._pool.execute(
            "INSERT INTO offsets (consumer, topic, partition, next_offset) VALUES ($1, $2, $3, 0)"
            " ON CONFLICT DO NOTHING",
            self.name,
            *partition,
        )
        stored = await self._pool.fetchval(
            "SELECT next_offset FROM offsets WHERE consumer = $1 AND topic = $2 AND partition = $3",
            self.name,
            *partition,
        )
        if stored > (await kafka.end_offsets([partition]))[partition]:
            stored = await self._restart_from_zero(partition, stored)
        if partition in kafka.assignment():  # it may have been revoked in the meantime
            self._next[partition] = stored
            kafka.seek(partition, stored)

    async def _restart_from_zero(self, partition: TopicPartition, stored: int) -> int:
        """Resets the offset of a topic that ends before it: the topic was lost and recreated.

        Messages that were applied before are noticed by their versions.
        """
        log.warning(
            "the topic was recreated: it is read from its start",
            extra={"consumer": self.name, "partition": partition, "reached": stored},
        )
        await self._pool.execute(
            "UPDATE offsets SET next_offset = 0"
            " WHERE consumer = $1 AND topic = $2 AND partition = $3 AND next_offset = $4",
            self.name,
            *partition,
            stored,
        )
        return 0
