"""How long messages took from Kafka into silver, batch by batch: told by the log of the tables, without their data."""

import json
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, NamedTuple

from analytics.commits import INGEST, Version, versions
from analytics.paths import TOPICS, path_of
from shared.settings import Settings

BRONZE, SILVER = "bronze.events", tuple(f"silver.{table}" for table in TOPICS.values())
NEWEST = 400


class Delay(NamedTuple):
    visible: datetime
    """When the batch could be read in all tables."""
    newest: float
    """Seconds that its newest message had been in Kafka by then."""
    oldest: float


def delays(settings: Settings, count: int = NEWEST) -> list[Delay]:
    """Of the newest batches that had messages, in order. Not of a lake in an object store: its log is not a folder."""
    if "://" in settings.lake:
        return []
    written = [_written(settings, table, count) for table in SILVER]
    done = {batch: max(at[batch] for at in written) for batch in written[0] if all(batch in at for at in written)}
    found = [version for version in versions(settings, BRONZE, count) if _is_ingest(version)]
    return [
        Delay(datetime.fromtimestamp(done[_batch(version)] / 1000, UTC), *_seconds(span, done[_batch(version)]))
        for version in reversed(found)
        if _batch(version) in done and (span := _span(settings, version.number))
    ]


def _written(settings: Settings, table: str, count: int) -> dict[tuple[str, int], int]:
    """When it got each batch."""
    return {_batch(version): version.timestamp for version in versions(settings, table, count) if _is_ingest(version)}


def _seconds(span: tuple[datetime, datetime], visible: int) -> tuple[float, float]:
    newest, oldest = (max(0.0, visible / 1000 - moment.timestamp()) for moment in reversed(span))
    return newest, oldest


def _span(settings: Settings, number: int) -> tuple[datetime, datetime] | None:
    """Of the times at which the messages of a commit came to Kafka."""
    log = Path(path_of(settings, BRONZE), "_delta_log", f"{number:020}.json")
    stats = [json.loads(action["add"]["stats"]) for action in _actions(log) if action.get("add", {}).get("stats")]
    times = [_times(stat) for stat in stats if "kafka_time" in stat.get("minValues", {})]
    return (min(low for low, _ in times), max(high for _, high in times)) if times else None


def _times(stat: dict[str, Any]) -> tuple[datetime, datetime]:
    low, high = (datetime.fromisoformat(stat[bound]["kafka_time"]) for bound in ("minValues", "maxValues"))
    return low, high


def _actions(log: Path) -> Iterator[dict[str, Any]]:
    if log.exists():  # the oldest are cleaned up
        yield from map(json.loads, log.read_text().splitlines())


def _is_ingest(version: Version) -> bool:
    return version.said.get("query") == INGEST


def _batch(version: Version) -> tuple[str, int]:
    return version.said["generation"], version.said["batch"]
