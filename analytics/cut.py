"""A cut: a place in Kafka, and the versions of silver that have all events before it and none after."""

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from functools import reduce
from operator import or_
from typing import Any

from pyspark.sql import Column
from pyspark.sql import functions as sf

from analytics.commits import INGEST, Offsets, Version, newest, versions
from analytics.tables import TOPICS
from shared.settings import Settings

TABLES = tuple(TOPICS.values())


@dataclass(frozen=True)
class Cut:
    silver: Mapping[str, int]
    """Version of each silver table."""
    generation: str
    batch: int
    offsets: Offsets
    """The first ones that are not in it."""

    def metadata(self, query: str, **more: Any) -> str:
        return json.dumps({"query": query, **asdict(self), **more})

    def before(self) -> Column:
        """Which messages are in it, of bronze or of Kafka."""
        reached = [
            (sf.col("topic") == topic) & (sf.col("partition") == int(partition)) & (sf.col("offset") < offset)
            for topic, partitions in self.offsets.items()
            for partition, offset in partitions.items()
        ]
        return reduce(or_, reached, sf.lit(False))


def present(settings: Settings) -> Cut | None:
    """The newest batch that all tables have; None where there is none. Some of them may be at the next already."""
    for last in {_batch(it): it for table in TABLES if (it := newest(settings, f"silver.{table}"))}.values():
        found = {table: _version(settings, table, _batch(last)) for table in TABLES}
        silver = {table: version for table, version in found.items() if version is not None}
        if len(silver) == len(TABLES):
            return Cut(silver, *_batch(last), last.said["offsets"])
    return None


def told(said: Mapping[str, Any]) -> Cut:
    """The cut that a commit says it has seen."""
    return Cut(said["silver"], said["generation"], said["batch"], said["offsets"])


def _version(settings: Settings, table: str, wanted: tuple[str, int]) -> int | None:
    """The newest one without a later batch. Commits of compactions and of retries are in it: they ingest nothing."""
    found = None
    for version in versions(settings, f"silver.{table}"):
        found = version.number if found is None else found
        if version.said.get("query") == INGEST:
            if _batch(version) == wanted:
                return found
            found = None
    return None


def _batch(version: Version) -> tuple[str, int]:
    return version.said["generation"], version.said["batch"]
