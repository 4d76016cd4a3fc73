"""How far the tables of the lake have come: their size, and what is in Kafka that is not in them yet. Without Spark."""

import asyncio
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from aiokafka import AIOKafkaConsumer, TopicPartition
from aiokafka.errors import KafkaError
from deltalake import DeltaTable

from analytics.commits import Offsets, Version, versions
from analytics.paths import path_of
from analytics.reading.asking import found_tables
from analytics.reading.travel import SPARED
from shared.kafka import client_options
from shared.settings import Settings

ASK_SECONDS = 5.0


@dataclass(frozen=True)
class Behind:
    events: int
    seconds: float
    """Since the oldest of them has been in Kafka."""


@dataclass(frozen=True)
class Standing:
    name: str
    rows: int
    bytes: int
    files: int
    version: int
    committed: datetime
    behind: Behind | None
    """None where its commits do not say how far it came, and where Kafka does not answer."""


@dataclass(frozen=True)
class Freshness:
    tables: list[Standing]
    kafka: str
    """Why Kafka cannot be compared with; empty when it can."""


async def freshness(settings: Settings) -> Freshness:
    names = found_tables(settings)
    reached = {name: reached_by(settings, name) for name in names}
    try:
        async with asyncio.timeout(ASK_SECONDS):
            behind, why = await _behind(settings, {n: o for n, o in reached.items() if o}), ""
    except (KafkaError, OSError, TimeoutError):
        behind, why = {}, f"Kafka at {settings.kafka_bootstrap} does not answer"
    return Freshness([_standing(settings, name, behind.get(name)) for name in names], why)


def reached_by(settings: Settings, name: str) -> Offsets | None:
    """The next offset of each partition that the table has to do with."""
    found = _newest_with_offsets(settings, "bronze.events" if name in SPARED else name)
    if not found:
        return None
    topic = name.removeprefix("silver.").replace("_events", ".events")
    offsets: Offsets = found.said["offsets"]
    return {topic: offsets[topic]} if name.startswith("silver.") and topic in offsets else offsets


def _newest_with_offsets(settings: Settings, name: str) -> Version | None:
    return next((v for limit in (20, None) for v in versions(settings, name, limit) if "offsets" in v.said), None)


def _standing(settings: Settings, name: str, behind: Behind | None) -> Standing:
    table = DeltaTable(path_of(settings, name))
    files: Any = table.get_add_actions(flatten=True)
    return Standing(
        name,
        rows=sum(count or 0 for count in files["num_records"].to_pylist()),
        bytes=sum(files["size_bytes"].to_pylist()),
        files=files.num_rows,
        version=table.version(),
        committed=datetime.fromtimestamp(table.history(1)[0]["timestamp"] / 1000, UTC),
        behind=behind,
    )


async def _behind(settings: Settings, reached: Mapping[str, Offsets]) -> dict[str, Behind]:
    if not reached:
        return {}
    kafka = AIOKafkaConsumer(**client_options(settings), enable_auto_commit=False)
    try:
        await kafka.start()
        partitions = {p for offsets in reached.values() for p in _positions(offsets)}
        ends: dict[TopicPartition, int] = await kafka.end_offsets(partitions)
        # Tables of the same batch miss the same messages: they are asked for once.
        oldest: dict[frozenset[tuple[TopicPartition, int]], datetime | None] = {}
        found = {}
        for name, offsets in reached.items():
            missed = {p: next_one for p, next_one in _positions(offsets).items() if ends[p] > next_one}
            if (key := frozenset(missed.items())) not in oldest:
                oldest[key] = await _oldest(kafka, missed)
            since = oldest[key]
            seconds = max(0.0, (datetime.now(UTC) - since).total_seconds()) if since else 0.0
            found[name] = Behind(sum(ends[p] - next_one for p, next_one in missed.items()), seconds)
        return found
    finally:
        await kafka.stop()


async def _oldest(kafka: AIOKafkaConsumer, missed: Mapping[TopicPartition, int]) -> datetime | None:
    """When the first of the messages at these places came to Kafka."""
    waiting, times = dict(missed), list[int]()
    while waiting:
        kafka.assign(list(waiting))
        for partition, offset in waiting.items():
            kafka.seek(partition, offset)
        for partition, messages in (await kafka.getmany(timeout_ms=1000)).items():
            times.append(messages[0].timestamp)
            waiting.pop(partition, None)
    return datetime.fromtimestamp(min(times) / 1000, UTC) if times else None


def _positions(offsets: Offsets) -> dict[TopicPartition, int]:
    return {TopicPartition(topic, int(p)): n for topic, parts in offsets.items() for p, n in parts.items()}


def furthest_behind(tables: Iterable[Standing], layer: str) -> Behind | None:
    known = [table.behind for table in tables if table.name.startswith(f"{layer}.") and table.behind]
    return max(known, key=lambda behind: behind.events, default=None)
