"""Reads a stretch of a topic: from given offsets up to given ends, outside of any consumer group."""

from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import datetime

from aiokafka import AIOKafkaConsumer, ConsumerRecord, TopicPartition
from aiokafka.errors import KafkaError

from shared.envelope import millis
from shared.errors import OperatorError
from shared.settings import Settings

Offsets = Mapping[TopicPartition, int]

POLL_MS = 500
BATCH = 5_000


@contextmanager
def kafka_of(settings: Settings) -> Iterator[None]:
    """Should it go away, that is the operator's to mend."""
    try:
        yield
    except KafkaError as error:
        raise OperatorError(
            f"Kafka at {settings.kafka_bootstrap} does not answer: {error!r}.", "Start it with: till up"
        ) from error


async def begins(kafka: AIOKafkaConsumer) -> dict[TopicPartition, int]:
    found: dict[TopicPartition, int] = await kafka.beginning_offsets(kafka.assignment())
    return found


async def ends(kafka: AIOKafkaConsumer) -> dict[TopicPartition, int]:
    found: dict[TopicPartition, int] = await kafka.end_offsets(kafka.assignment())
    return found


async def at_moment(kafka: AIOKafkaConsumer, moment: datetime) -> dict[TopicPartition, int]:
    """Of each partition the first offset that is not before it; its end where all are."""
    found = await kafka.offsets_for_times(dict.fromkeys(kafka.assignment(), millis(moment)))
    last = await ends(kafka)
    return {partition: place.offset if place else last[partition] for partition, place in found.items()}


async def between(
    kafka: AIOKafkaConsumer, starts: Offsets, stops: Offsets, batch: int = BATCH
) -> AsyncIterator[tuple[TopicPartition, Sequence[ConsumerRecord]]]:
    """Each partition in order; `stops` are exclusive."""
    left = {partition for partition, start in starts.items() if start < stops[partition]}
    for partition in left:
        kafka.seek(partition, starts[partition])
    while left:
        for partition, records in (await kafka.getmany(*left, timeout_ms=POLL_MS, max_records=batch)).items():
            if wanted := [record for record in records if record.offset < stops[partition]]:
                yield partition, wanted
        # By position, not by the last record: of a compacted topic the last one may be gone.
        left = {partition for partition in left if await kafka.position(partition) < stops[partition]}
