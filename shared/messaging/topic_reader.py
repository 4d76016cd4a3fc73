"""Reads topics outside of any consumer group: whole, in part, a single record, or followed without an end.

Refills, verification, rebuilds and the dead-letter queue read topics with this. A service that acts on messages uses
`consumer.py`.
"""

import asyncio
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from datetime import datetime

from aiokafka import AIOKafkaConsumer, ConsumerRecord, TopicPartition

from shared.cancellation import heed_cancellation
from shared.envelope import millis
from shared.errors import OperatorError
from shared.messaging.kafka import client_options, kafka_errors, open_admin
from shared.settings import Settings

Offsets = Mapping[TopicPartition, int]

POLL_MS = 500
BATCH = 5_000
RECORD_SECONDS = 10.0


class NoSuchTopic(OperatorError):
    """The topic does not exist."""

    def __init__(self, topic: str) -> None:
        super().__init__(f"The topic {topic} does not exist.", "Create the topics with: till up")


class TopicReader:
    """Reads all partitions of the topics it was opened for."""

    def __init__(self, kafka: AIOKafkaConsumer) -> None:
        self._kafka = kafka

    async def beginnings(self) -> dict[TopicPartition, int]:
        found: dict[TopicPartition, int] = await self._kafka.beginning_offsets(self._kafka.assignment())
        return found

    async def ends(self) -> dict[TopicPartition, int]:
        """Returns the offset after the last record of each partition, as of now."""
        found: dict[TopicPartition, int] = await self._kafka.end_offsets(self._kafka.assignment())
        return found

    async def offsets_at(self, moment: datetime) -> dict[TopicPartition, int]:
        """Returns the first offset of each partition that is not before the moment; its end if all are."""
        found = await self._kafka.offsets_for_times(dict.fromkeys(self._kafka.assignment(), millis(moment)))
        ends = await self.ends()
        return {partition: place.offset if place else ends[partition] for partition, place in found.items()}

    async def read(
        self, starts: Offsets, stops: Offsets, batch: int = BATCH
    ) -> AsyncIterator[tuple[TopicPartition, Sequence[ConsumerRecord]]]:
        """Yields the records from `starts` up to `stops` (exclusive) in batches, each partition in order."""
        left = {partition for partition, start in starts.items() if start < stops[partition]}
        for partition in left:
            self._kafka.seek(partition, starts[partition])
        while left:
            heed_cancellation()
            for partition, records in (await self._kafka.getmany(*left, timeout_ms=POLL_MS, max_records=batch)).items():
                if wanted := [record for record in records if record.offset < stops[partition]]:
                    yield partition, wanted
            # By position, not by the last record: in a compacted topic the last record may be gone.
            left = {partition for partition in left if await self._kafka.position(partition) < stops[partition]}

    async def follow(self, starts: Offsets) -> AsyncIterator[Sequence[ConsumerRecord]]:
        """Yields the records from `starts` on, and then each new one, without an end."""
        for partition, start in starts.items():
            self._kafka.seek(partition, start)
        while True:
            heed_cancellation()
            for records in (await self._kafka.getmany(timeout_ms=POLL_MS, max_records=BATCH)).values():
                yield records


@asynccontextmanager
async def open_reader(settings: Settings, *topics: str) -> AsyncIterator[TopicReader]:
    # Existence is checked first, because a consumer waits long for a topic that is missing.
    async with open_admin(settings) as admin:
        existing = await admin.list_topics()
        for topic in topics:
            if topic not in existing:
                raise NoSuchTopic(topic)
        described = await admin.describe_topics(list(topics))
    partitions = [
        TopicPartition(it["topic"], partition["partition"]) for it in described for partition in it["partitions"]
    ]
    kafka = AIOKafkaConsumer(**client_options(settings), enable_auto_commit=False, auto_offset_reset="earliest")
    try:
        await kafka.start()
        kafka.assign(partitions)
        yield TopicReader(kafka)
    finally:
        await kafka.stop()


async def read_topic(settings: Settings, topic: str) -> AsyncIterator[Sequence[ConsumerRecord]]:
    """Yields everything in the topic up to its end as of now, in batches, each partition in order."""
    async with open_reader(settings, topic) as reader:
        async for _, records in reader.read(await reader.beginnings(), await reader.ends()):
            yield records


async def is_empty(settings: Settings, topic: str) -> bool:
    async with open_reader(settings, topic) as reader:
        return await reader.beginnings() == await reader.ends()


async def read_record(settings: Settings, topic: str, partition: int, offset: int) -> ConsumerRecord | None:
    """Returns the record at one offset; None if there is none, or compaction has removed it."""
    place = TopicPartition(topic, partition)
    try:
        with kafka_errors(settings):
            async with open_reader(settings, topic) as reader, asyncio.timeout(RECORD_SECONDS):
                beginnings, ends = await reader.beginnings(), await reader.ends()
                if place not in ends or not beginnings[place] <= offset < ends[place]:
                    return None
                async for _, [record] in reader.read({place: offset}, {place: offset + 1}, batch=1):
                    return record
    except NoSuchTopic:
        return None
    except TimeoutError as late:
        raise OperatorError(f"Kafka does not return {topic}/{partition}/{offset}.", "See: till status") from late
    return None
