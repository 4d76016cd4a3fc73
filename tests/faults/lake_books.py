"""Checks that every message is in the lake once. It reads with librdkafka and delta-rs, without Spark."""

from collections import Counter
from collections.abc import Iterable
from typing import Any

from analytics.catalog import TOPICS
from analytics.lake import LakeFiles
from analytics.settings import LakeSettings
from infra.settings import Settings
from tests.integration.shared.topics import Record, read_topic

Place = tuple[str, int, int]


def faults(settings: Settings, poison: Iterable[str] = ()) -> list[str]:
    """Returns the messages that are lost or duplicated. `poison` are the ids of events that belong in quarantine."""
    records = {topic: read_topic(settings, topic) for topic in TOPICS}
    bronze = [(row["topic"], row["partition"], row["offset"]) for row in rows(settings, "bronze.events")]
    silver = {topic: [row["event_id"] for row in rows(settings, f"silver.{name}")] for topic, name in TOPICS.items()}
    aside = [row["event_id"] for row in rows(settings, "silver.quarantine")]
    return compare(records, bronze, silver, aside, set(poison))


def compare(
    records: dict[str, list[Record]],
    bronze: list[Place],
    silver: dict[str, list[str]],
    aside: list[str],
    poison: set[str],
) -> list[str]:
    sent = [(topic, record.partition, record.offset) for topic, found in records.items() for record in found]
    wanted = Counter({event_id: 1 for found in records.values() for event_id in map(_event_id, found)})
    found = Counter(event_id for events in silver.values() for event_id in events)
    good = Counter({event_id: 1 for event_id in wanted if event_id not in poison})
    bad = Counter({event_id: 1 for event_id in wanted if event_id in poison})
    return [
        *_differences("bronze", Counter(place for place in sent), Counter(b for b in bronze if b[0] in records)),
        *_differences("silver", good, found),
        *_differences("quarantine", bad, Counter(aside)),
    ]


def rows(settings: LakeSettings, name: str) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = LakeFiles(settings).snapshot(name).to_pyarrow_table().to_pylist()
    return found


def _event_id(record: Record) -> str:
    return record.header("ce_id")


def _differences(where: str, wanted: Counter[Any], found: Counter[Any]) -> list[str]:
    lost = [f"{where} has lost {one}" for one in (wanted - found)]
    return lost + [f"{where} has {one} more than once, or should not have it" for one in (found - wanted)]
