"""Topics as another Kafka client sees them: created, deleted, read and written without the code under test."""

import asyncio
import time
from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

import confluent_kafka
from aiokafka.admin import NewTopic
from aiokafka.errors import for_code

from shared.messaging.kafka import open_admin
from shared.settings import Settings
from tests.integration.shared.loops import PATIENCE, until


async def create_topics(settings: Settings, partitions: dict[str, int]) -> None:
    async with open_admin(settings) as admin:
        answer = await admin.create_topics([NewTopic(name, count, 1) for name, count in partitions.items()])
        for _, code, message in answer.topic_errors:
            if code:
                raise for_code(code)(message)

    async def usable() -> bool:
        return await asyncio.to_thread(_has_leaders, settings, partitions)

    await until(usable)


def _has_leaders(settings: Settings, partitions: dict[str, int]) -> bool:
    """Tells whether the partitions are usable: after their creation each needs a leader that knows about it."""
    client = confluent_kafka.Consumer({"bootstrap.servers": settings.kafka_bootstrap, "group.id": "leaders"})
    try:
        for topic, count in partitions.items():
            for partition in range(count):
                client.get_watermark_offsets(confluent_kafka.TopicPartition(topic, partition), timeout=2)
    except confluent_kafka.KafkaException:
        return False
    finally:
        client.close()
    return True


async def delete_topics(settings: Settings, names: Sequence[str]) -> None:
    async with open_admin(settings) as admin:
        await admin.delete_topics(list(names))

        async def gone() -> bool:
            return not set(names) & set(await admin.list_topics())

        await until(gone)


class Record(NamedTuple):
    """A message as librdkafka sees it."""

    partition: int
    offset: int
    key: bytes | None
    value: bytes | None
    headers: tuple[tuple[str, bytes], ...]
    timestamp: int

    def header(self, name: str) -> str:
        return dict(self.headers)[name].decode()

    @property
    def content(self) -> tuple[object, ...]:
        """Everything but partition and offset."""
        return self.key, self.value, self.headers, self.timestamp


def read_topic(settings: Settings, topic: str) -> list[Record]:
    """Reads the whole topic with librdkafka, partition by partition, without any of the code under test."""
    consumer = confluent_kafka.Consumer(
        {"bootstrap.servers": settings.kafka_bootstrap, "group.id": "reader", "enable.auto.commit": False}
    )
    try:
        partitions = consumer.list_topics(topic, timeout=10).topics[topic].partitions
        wanted = {p: consumer.get_watermark_offsets(confluent_kafka.TopicPartition(topic, p)) for p in partitions}
        missing = {p: end for p, (start, end) in wanted.items() if end > start}
        consumer.assign([confluent_kafka.TopicPartition(topic, p, wanted[p][0]) for p in missing])
        found: list[Record] = []
        deadline = time.monotonic() + PATIENCE
        while missing:
            assert time.monotonic() < deadline, f"{topic} could not be read to its end"
            for message in consumer.consume(5000, timeout=0.5):
                assert message.error() is None, message.error()
                record = _record(message)
                found.append(record)
                if record.offset + 1 >= missing.get(record.partition, 0):
                    missing.pop(record.partition, None)
        return sorted(found)
    finally:
        consumer.close()


def _record(message: Any) -> Record:
    return Record(
        message.partition(),
        message.offset(),
        message.key(),
        message.value(),
        tuple(message.headers() or ()),
        message.timestamp()[1],
    )


def send(settings: Settings, topic: str, records: Iterable[Record]) -> None:
    """Writes messages to a topic with librdkafka, in their order, into the partition that each names."""
    producer = confluent_kafka.Producer(
        {
            "bootstrap.servers": settings.kafka_bootstrap,
            "message.max.bytes": 10_000_000,
            "compression.type": "zstd",
        }
    )
    failures: list[Any] = []

    def delivered(error: Any, _message: Any) -> None:
        if error:
            failures.append(error)

    for record in records:
        producer.produce(
            topic,
            key=record.key,
            value=record.value,
            headers=list(record.headers),
            partition=record.partition,
            timestamp=record.timestamp,
            on_delivery=delivered,
        )
    assert producer.flush(PATIENCE) == 0
    assert not failures, failures


def by_stream(records: Iterable[Record]) -> dict[str, list[int]]:
    """The versions of each stream, in the order of their offsets."""
    versions: dict[str, list[int]] = {}
    for record in sorted(records):
        versions.setdefault(record.header("ce_subject"), []).append(int(record.header("ce_streamversion")))
    return versions
