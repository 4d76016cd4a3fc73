"""What a commit says of itself: the query that wrote it, its batch, and the Kafka offsets it has reached.

Read without Spark, so that the command line can ask in milliseconds.
"""

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from deltalake import DeltaTable
from deltalake.exceptions import TableNotFoundError

from analytics.paths import path_of
from shared.settings import Settings

INGEST = "ingest"
WINDOWS = (32, 512, 8192, None)

Offsets = Mapping[str, Mapping[str, int]]
"""By topic and partition: the next one to be read. Partitions are text, as in JSON and in Spark's own."""


@dataclass(frozen=True)
class Commit:
    """Of the ingest. The commits of one batch say the same in all tables."""

    generation: str
    """Of the checkpoint: a batch number means something only within it."""
    batch: int
    offsets: Offsets
    topics: Mapping[str, str] = field(default_factory=dict)
    """The id of each topic: one that is deleted and created again has another."""

    @property
    def metadata(self) -> str:
        return json.dumps(
            {
                "query": INGEST,
                "generation": self.generation,
                "batch": self.batch,
                "offsets": self.offsets,
                "topics": self.topics,
            }
        )

    def options(self, table: str) -> dict[str, str]:
        """For the writer: Delta takes each batch of a generation once, whoever offers it again."""
        return {
            "txnAppId": f"{self.generation}:{table}",
            "txnVersion": str(self.batch),
            "userMetadata": self.metadata,
        }


@dataclass(frozen=True)
class Version:
    number: int
    said: Mapping[str, Any]
    """Its metadata; empty where a commit has none of ours (a compaction, the creation)."""
    timestamp: int
    """Unix milliseconds, by the clock of the driver."""
    rows: int | None = None
    """How many were written, where it says so."""


def versions(settings: Settings, name: str, limit: int | None = None) -> Iterator[Version]:
    """Of a table, newest first. The log is read only as far back as somebody wants to hear."""
    try:
        table = DeltaTable(path_of(settings, name))
    except TableNotFoundError:
        return
    told = 0
    for window in [limit] if limit else WINDOWS:
        entries = table.history(window)
        yield from map(_version, entries[told:])
        told = len(entries)
        if window is None or told < window:
            return


def newest(settings: Settings, name: str, query: str = INGEST) -> Version | None:
    """The newest commit of that query."""
    return next((version for version in versions(settings, name) if version.said.get("query") == query), None)


def ingested(settings: Settings, name: str = "bronze.events") -> Commit | None:
    """How far the ingest has come with a table."""
    version = newest(settings, name)
    return commit_of(version) if version else None


def commit_of(version: Version) -> Commit:
    said = version.said
    return Commit(said["generation"], said["batch"], said["offsets"], said.get("topics", {}))


def rows_written(settings: Settings, name: str, commit: Commit) -> int | None:
    """By this batch, if it was the last thing that was written to the table (but for a compaction)."""
    for version in versions(settings, name, 2):
        if version.said.get("query") == INGEST and commit_of(version) == commit:
            return version.rows
    return None


def covers(offsets: Offsets, wanted: Offsets) -> bool:
    """Whether all that is wanted has been read."""
    return all(
        offsets.get(topic, {}).get(partition, 0) >= offset
        for topic, partitions in wanted.items()
        for partition, offset in partitions.items()
    )


def version_covering(settings: Settings, name: str, wanted: Offsets) -> Version | None:
    """The oldest version that has all up to these offsets. It may have more: filter by offset for an exact cut."""
    found = None
    for version in versions(settings, name):
        if "offsets" in version.said:
            if not covers(version.said["offsets"], wanted):
                break
            found = version
    return found


def _version(entry: Mapping[str, Any]) -> Version:
    written = entry.get("operationMetrics", {}).get("numOutputRows")
    rows = None if written is None else int(written)
    return Version(entry["version"], _said(entry.get("userMetadata")), entry["timestamp"], rows)


def _said(metadata: str | None) -> dict[str, Any]:
    try:
        said = json.loads(metadata or "{}")
    except ValueError:
        return {}
    return said if isinstance(said, dict) else {}
