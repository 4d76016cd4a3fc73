"""Measures the tables without Spark: their size, and how many messages of Kafka are not in them yet."""

import asyncio
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from aiokafka import AIOKafkaConsumer, TopicPartition
from aiokafka.errors import KafkaError

from analytics.catalog import TOPICS
from analytics.lake import LakeFiles
from analytics.log.commits import ProgressCommit
from analytics.log.offsets import Offsets
from analytics.query.time_travel import RARELY_WRITTEN
from analytics.settings import LakeSettings
from shared.messaging.kafka import client_options

KAFKA_SECONDS = 5.0
"""Longest wait for an answer from Kafka."""


@dataclass(frozen=True)
class Lag:
    """Distance of a table behind Kafka."""

    events: int
    seconds: float
    """Age of the oldest of them, by its timestamp in Kafka, which is the time of its event."""


@dataclass(frozen=True)
class TableState:
    name: str
    rows: int
    bytes: int
    files: int
    version: int
    committed: datetime
    behind: Lag | None
    """Lag behind Kafka; None if the commits record no offsets or Kafka does not answer."""


@dataclass(frozen=True)
class Freshness:
    tables: list[TableState]
    kafka: str
    """Why the lag is not known; empty if it is."""


async def measure_freshness(lake: LakeFiles) -> Freshness:
    """Measures every table of the lake. If Kafka does not answer, the lag is left out."""
    names = lake.tables()
    reached = {name: reached_by(lake, name) for name in names}
    try:
        async with asyncio.timeout(KAFKA_SECONDS):
            behind, why = await _lags(lake.settings, {n: o for n, o in reached.items() if o}), ""
    except (KafkaError, OSError, TimeoutError):
        behind, why = {}, f"Kafka at {lake.settings.kafka_bootstrap} does not answer"
    return Freshness([_state(lake, name, behind.get(name)) for name in names], why)


def reached_by(lake: LakeFiles, name: str) -> Offsets | None:
    """Returns the next offset of each partition that the table is made from; a silver table has one topic."""
    span = lake.log("bronze.events" if name in RARELY_WRITTEN else name).newest(ProgressCommit)
    if not span:
        return None
    offsets = span.commit.reached
    topic = next((topic for topic, table in TOPICS.items() if name == f"silver.{table}"), None)
    return {topic: offsets[topic]} if topic and topic in offsets else offsets


def _state(lake: LakeFiles, name: str, behind: Lag | None) -> TableState:
    table = lake.snapshot(name)
    [newest] = lake.log(name).versions(1)
    files: Any = table.get_add_actions(flatten=True)
    return TableState(
        name,
        rows=sum(count or 0 for count in files["num_records"].to_pylist()),
        bytes=sum(files["size_bytes"].to_pylist()),
        files=files.num_rows,
        version=table.version(),
        committed=datetime.fromtimestamp(newest.timestamp / 1000, UTC),
        behind=behind,
    )


async def _lags(settings: LakeSettings, reached: Mapping[str, Offsets]) -> dict[str, Lag]:
    if not reached:
        return {}
    kafka = AIOKafkaConsumer(**client_options(settings), enable_auto_commit=False)
    try:
        await kafka.start()
        partitions = {p for offsets in reached.values() for p in _positions(offsets)}
        ends: dict[TopicPartition, int] = await kafka.end_offsets(partitions)
        # Tables of the same batch lack the same messages: one request serves all of them.
        oldest: dict[frozenset[tuple[TopicPartition, int]], datetime | None] = {}
        found = {}
        for name, offsets in reached.items():
            missed = {p: next_one for p, next_one in _positions(offsets).items() if ends[p] > next_one}
            if (key := frozenset(missed.items())) not in oldest:
                oldest[key] = await _oldest(kafka, missed)
            since = oldest[key]
            seconds = max(0.0, (datetime.now(UTC) - since).total_seconds()) if since else 0.0
            found[name] = Lag(sum(ends[p] - next_one for p, next_one in missed.items()), seconds)
        return found
    finally:
        await kafka.stop()


async def _oldest(kafka: AIOKafkaConsumer, missed: Mapping[TopicPartition, int]) -> datetime | None:
    """Returns the earliest timestamp of the messages at these positions."""
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


def greatest_lag(tables: Iterable[TableState], layer: str) -> Lag | None:
    known = [table.behind for table in tables if table.name.startswith(f"{layer}.") and table.behind]
    return max(known, key=lambda behind: behind.events, default=None)
