"""Delays until events can be read in silver, batch by batch, computed from the log of the tables.

A delay begins at the timestamp of the Kafka message, which is the time of its event.
"""

import json
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, NamedTuple

from analytics.catalog import SILVER_TABLES
from analytics.lake import LakeFiles
from analytics.log.commits import IngestCommit

BRONZE = "bronze.events"
NEWEST = 400
"""Batches that are looked at."""


class Delay(NamedTuple):
    visible: datetime
    """Time at which the batch could be read in all tables."""
    newest: float
    """Age of its newest message by then, in seconds."""
    oldest: float


def measure_delays(lake: LakeFiles, count: int = NEWEST) -> list[Delay]:
    """Returns the delays of the newest batches that had messages, in order.

    Returns none for a lake in an object store, whose log is not a local folder.
    """
    if lake.is_remote:
        return []
    written = [_commit_times(lake, f"silver.{table}", count) for table in SILVER_TABLES]
    visible = {batch: max(at[batch] for at in written) for batch in written[0] if all(batch in at for at in written)}
    batches = [(span.commit.batch_id, span.version) for span in lake.log(BRONZE).spans(IngestCommit, count)]
    return [
        Delay(datetime.fromtimestamp(visible[batch] / 1000, UTC), *_seconds(times, visible[batch]))
        for batch, version in reversed(batches)
        if batch in visible and (times := _kafka_times(lake, version))
    ]


def _commit_times(lake: LakeFiles, table: str, count: int) -> dict[tuple[str, int], int]:
    return {span.commit.batch_id: span.timestamp for span in lake.log(table).spans(IngestCommit, count)}


def _seconds(times: tuple[datetime, datetime], visible: int) -> tuple[float, float]:
    newest, oldest = (max(0.0, visible / 1000 - moment.timestamp()) for moment in reversed(times))
    return newest, oldest


def _kafka_times(lake: LakeFiles, version: int) -> tuple[datetime, datetime] | None:
    """Returns the first and the last timestamp in Kafka of the messages that a commit added to bronze."""
    log = Path(lake.path(BRONZE), "_delta_log", f"{version:020}.json")
    stats = [json.loads(action["add"]["stats"]) for action in _actions(log) if action.get("add", {}).get("stats")]
    times = [_bounds(stat) for stat in stats if "kafka_time" in stat.get("minValues", {})]
    return (min(low for low, _ in times), max(high for _, high in times)) if times else None


def _bounds(stat: dict[str, Any]) -> tuple[datetime, datetime]:
    low, high = (datetime.fromisoformat(stat[bound]["kafka_time"]) for bound in ("minValues", "maxValues"))
    return low, high


def _actions(log: Path) -> Iterator[dict[str, Any]]:
    if log.exists():  # the oldest are cleaned up
        yield from map(json.loads, log.read_text().splitlines())
