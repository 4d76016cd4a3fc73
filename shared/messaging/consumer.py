"""Reads topics and applies them, its offsets stored in the transaction of what they caused: once, whatever dies."""

import asyncio
import logging
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from datetime import UTC, datetime
from typing import Any, NamedTuple, Protocol

import asyncpg
from aiokafka import AIOKafkaConsumer, ConsumerRecord, TopicPartition
from aiokafka.abc import ConsumerRebalanceListener
from aiokafka.errors import KafkaError

from shared.cancellation import heed_cancellation
from shared.codec import Undecodable
from shared.crashpoints import crashpoint
from shared.database import AWAY, Connection, Pool
from shared.deadletters import dead_letter
from shared.envelope import Message
from shared.kafka import client_options
from shared.registry import RegistryUnavailable, SchemaMemory
from shared.settings import Settings
from shared.store import Conflict, Unavailable, Write, execute

log = logging.getLogger(__name__)

BATCH = 1_000
POLL_MS = 500
RETRY_SECONDS = 1.0
TRIES = 10

# The world around us, not the message: wait and try again.
TRANSIENT = (
    *AWAY,
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

MOVE = """
UPDATE offsets SET next_offset = reached
FROM unnest($2::text[], $3::int[], $4::bigint[], $5::bigint[]) AS move (of_topic, of_partition, expected, reached)
WHERE consumer = $1 AND topic = of_topic AND partition = of_partition AND next_offset = expected
"""


class Incoming(NamedTuple):  # one for each message: a frozen dataclass takes four times as long to make
    """A message that could be read. `data` is the decoded record: its fields, or the event where it is our own."""

    type: str
    stream_id: str
    version: int
    data: Any
    event_id: str
    time: datetime
    correlation_id: str
    traceparent: str
    topic: str
    partition: int
    offset: int


Apply = Callable[[Connection, Sequence[Incoming]], Awaitable[None]]
Batches = Mapping[TopicPartition, list[ConsumerRecord]]


class Decoding(Protocol):
    """Reads values, by the schemas it knows or learns."""

    async def decode(self, value: bytes) -> Any: ...

    def type_of(self, value: bytes) -> str: ...


class Fenced(Exception):
    """Another consumer has moved this partition on since we read it; what we did was rolled back."""


class Consumer(ConsumerRebalanceListener):  # type: ignore[misc] # aiokafka has no types
    """`apply` runs inside the transaction. It may see a message twice (a relay died): let versions decide."""

    def __init__(
        self,
        service: str,
        name: str,
        topics: Sequence[str],
        apply: Apply,
        memory: SchemaMemory,
        pool: Pool,
        settings: Settings,
    ) -> None:
        self.name = f"{service}.{name}"
        self.topics = topics
        self._service = service
        self._apply = apply
        self._memory = memory
        self._pool = pool
        self._settings = settings
        self._kafka: AIOKafkaConsumer | None = None
        self._next: dict[TopicPartition, int] = {}

    async def run(self) -> None:
        """Until cancelled; whatever is away is waited for."""
        while True:
            heed_cancellation()
            try:
                async with self._consumer() as kafka:
                    while True:
                        heed_cancellation()
                        await self._advance(kafka, await kafka.getmany(timeout_ms=POLL_MS, max_records=BATCH))
            except TRANSIENT as error:
                log.warning(
                    "consumer interrupted, it tries again",
                    extra={"consumer": self.name, "error": repr(error)},
                )
                await asyncio.sleep(RETRY_SECONDS)

    @asynccontextmanager
    async def _consumer(self) -> AsyncIterator[AIOKafkaConsumer]:
        kafka = AIOKafkaConsumer(
            **client_options(self._settings),
            group_id=self.name,
            client_id=self.name,
            enable_auto_commit=False,
            auto_offset_reset="earliest",
            # The soonest a broker lets another take over from a consumer that died without a word.
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
            await self._seek_to_stored(partition)

    async def _seek_to_stored(self, partition: TopicPartition) -> None:
        """Our database knows how far we are; Kafka's own group offsets are not used."""
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
            stored = await self._start_anew(partition, stored)
        if partition in kafka.assignment():  # still
            self._next[partition] = stored
            kafka.seek(partition, stored)

    async def _start_anew(self, partition: TopicPartition, stored: int) -> int:
        """The topic ends before the place we had reached: it was lost and made again. Versions tell what we have."""
        log.warning(
            "the topic was made anew: it is read from its start",
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

    async def _advance(self, kafka: AIOKafkaConsumer, batches: Batches) -> None:
        ours = {partition: records for partition, records in batches.items() if partition in self._next}
        for partition in batches.keys() - ours.keys():  # read before we looked up how far we are
            await self._seek_to_stored(partition)
        try:
            await self._apply_all(ours)
        except TRANSIENT:
            # Back to where the database says we are, or what was not applied would be passed over.
            for partition in ours.keys() & kafka.assignment() & self._next.keys():
                kafka.seek(partition, self._next[partition])
            raise

    async def _apply_all(self, batches: Batches) -> None:
        """In one transaction: what costs is the round trips. If that does not work, each partition by itself."""
        if len(batches) > 1 and await self._works(batches):
            return
        for partition, records in batches.items():
            try:
                await self._apply_those_of(partition, records)
            except Fenced:
                log.info(  # every rebalance has some: records that were read before the partition changed hands
                    "fenced: another consumer has this partition",
                    extra={"consumer": self.name, "partition": partition},
                )
                await self._seek_to_stored(partition)

    async def _works(self, batches: Batches) -> bool:
        try:
            return await self._fails(batches) is None
        except Fenced:  # from one of them at least
            return False

    async def _apply_those_of(self, partition: TopicPartition, records: list[ConsumerRecord]) -> None:
        if await self._fails({partition: records}) is None:
            return
        # One of them is poison: find it, set it aside, go on with the others.
        for record in records:
            if error := await self._fails({partition: [record]}):
                await self._transact({partition: [record]}, None, poison=error)

    async def _fails(self, batches: Batches) -> Exception | None:
        """Apply them; what is wrong with them, if anything. Given, not raised, or it would be the cause of the next."""
        for attempt in range(TRIES):
            try:
                await self._transact(batches, self._apply)
                break
            except Conflict:  # somebody else wrote to a stream it wrote to: once more, on what is stored now
                if attempt == TRIES - 1:
                    raise
            except (Fenced, *TRANSIENT) as error:
                if isinstance(error, ValueError):  # of asyncpg: a value that no column can hold
                    return error
                raise
            except Exception as error:  # whatever it is, it is kept with the message
                return error
        return None

    async def _transact(self, batches: Batches, apply: Apply | None, poison: Exception | None = None) -> None:
        readable, dead = await self._read([record for records in batches.values() for record in records], poison)
        # -1 is no offset: the partition has been taken from us while we read.
        expected = {partition: self._next.get(partition, -1) for partition in batches}
        reached = {partition: records[-1].offset + 1 for partition, records in batches.items()}
        if any(records[0].offset < expected[partition] for partition, records in batches.items()):
            raise Fenced  # read before the partition was taken from us and given back, further on
        async with self._pool.acquire() as connection, connection.transaction():
            # First, for it also locks the rows: two consumers that both believe to own a partition take turns.
            moved = await connection.execute(
                MOVE,
                self.name,
                [partition.topic for partition in batches],
                [partition.partition for partition in batches],
                list(expected.values()),
                list(reached.values()),
            )
            if moved != f"UPDATE {len(batches)}":
                raise Fenced
            if readable and apply:
                await apply(connection, readable)
            if dead:
                await execute(connection, [Write(messages=dead)])
            # Handled, not committed: after a death here neither the effect nor the offset exists. It is read again.
            crashpoint("handled, not committed")
        self._next.update(reached)

    async def apply_again(self, connection: Connection, message: Incoming) -> None:
        """Apply one that had been set aside, in the caller's transaction."""
        # In turn with who reads the partition now: what it applies next may be about the same row.
        await connection.execute(
            "SELECT FROM offsets WHERE consumer = $1 AND topic = $2 AND partition = $3 FOR UPDATE",
            self.name,
            message.topic,
            message.partition,
        )
        await self._apply(connection, [message])

    async def _read(
        self, records: list[ConsumerRecord], poison: Exception | None
    ) -> tuple[list[Incoming], list[Message]]:
        readable, dead = [], []
        for record in records:
            try:
                if poison:
                    raise poison
                readable.append(await self.incoming(record))
            except TRANSIENT:
                raise
            except Exception as error:  # unreadable for whatever reason: kept, with the reason
                log.error(
                    "dead letter",
                    extra={
                        "consumer": self.name,
                        "topic": record.topic,
                        "offset": record.offset,
                        "error": repr(error),
                    },
                )
                dead.append(dead_letter(self._service, self.name, record, error))
        return readable, dead

    async def incoming(self, record: ConsumerRecord) -> Incoming:
        return await incoming(record, self._memory)


async def incoming(record: ConsumerRecord, memory: Decoding) -> Incoming:
    if record.value is None:
        raise Undecodable("the message has no value")
    data = await memory.decode(record.value)
    headers = dict(record.headers)
    try:
        _ = headers["ce_type"]  # as which it was written; after upcasters it may be another
        return Incoming(
            type=memory.type_of(record.value),
            stream_id=headers["ce_subject"].decode(),
            version=int(headers["ce_streamversion"]),
            data=data,
            event_id=headers["ce_id"].decode(),
            time=datetime.fromisoformat(headers["ce_time"].decode()).astimezone(UTC),
            correlation_id=headers["ce_correlationid"].decode(),
            traceparent=headers["traceparent"].decode(),
            topic=record.topic,
            partition=record.partition,
            offset=record.offset,
        )
    except KeyError as missing:
        raise Undecodable(f"the header {missing} is missing") from missing
