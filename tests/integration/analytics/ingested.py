"""Writes silver batch by batch as the ingest would, without Kafka: for tests of what comes after silver."""

from collections.abc import Sequence

from analytics.catalog import TOPICS
from analytics.lake import Lake
from analytics.log.commits import IngestCommit
from tests.roll import ShopEvent
from tests.unit.analytics.stories import silver_of


class Ingested:
    def __init__(self, lake: Lake) -> None:
        self._lake = lake
        self._batch = -1
        self._reached = dict.fromkeys(TOPICS, 0)
        self.events: list[ShopEvent] = []

    def take(self, events: Sequence[ShopEvent]) -> None:
        """Writes one batch: a commit with the same metadata to each table."""
        self._batch += 1
        self.events += events
        for one in events:
            self._reached[one.topic] += 1
        commit = IngestCommit("by-hand", self._batch, {topic: {"0": n} for topic, n in self._reached.items()})
        for table, rows in silver_of(self._lake.spark, events).items():
            writer = rows.drop("batch").coalesce(1).write.format("delta").mode("append")
            writer.options(**commit.write_options(f"silver.{table}")).save(self._lake.path(f"silver.{table}"))
