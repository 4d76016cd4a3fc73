"""Which version of each Delta table belongs to a moment of the services: matched by Kafka offsets, without Spark."""

from dataclasses import dataclass
from datetime import datetime

from aiokafka import AIOKafkaConsumer, TopicPartition

from shared.envelope import millis
from shared.kafka import client_options, open_admin
from shared.settings import Settings

Offsets = dict[str, dict[str, int]]


@dataclass(frozen=True)
class TableVersion:
    name: str
    version: int | None
    """The oldest that has all that had happened; None where the lake has not come that far."""
    newest: int


async def lake_versions(settings: Settings, topics: list[str], at: datetime) -> list[TableVersion]:
    """Nothing where there is no lake yet."""
    from analytics.commits import version_covering, versions
    from analytics.reading.asking import found_tables

    names = found_tables(settings)
    wanted = await offsets_at(settings, topics, at) if names else {}
    found = []
    for name in names:
        version = version_covering(settings, name, wanted)
        newest = next(versions(settings, name, 1)).number
        found.append(TableVersion(name, version.number if version else None, newest))
    return found


async def offsets_at(settings: Settings, topics: list[str], at: datetime) -> Offsets:
    """By topic and partition, the first message that is dated after the moment."""
    async with open_admin(settings) as admin:
        described = await admin.describe_topics(topics)
    places = [TopicPartition(t["topic"], p["partition"]) for t in described for p in t["partitions"]]
    consumer = AIOKafkaConsumer(**client_options(settings), enable_auto_commit=False)
    await consumer.start()
    try:
        after = await consumer.offsets_for_times(dict.fromkeys(places, millis(at) + 1))
        ends = await consumer.end_offsets(places)
    finally:
        await consumer.stop()
    offsets: Offsets = {}
    for place in places:
        first = after[place].offset if after[place] else ends[place]
        offsets.setdefault(place.topic, {})[str(place.partition)] = first
    return offsets
