"""Silver as the ingest would have left it, batch by batch, without a Kafka: for tests of what comes after silver."""

from collections.abc import Sequence

from pyspark.sql import SparkSession

from analytics.commits import Commit
from analytics.tables import TOPICS, path_of
from shared.settings import Settings
from tests.roll import Told
from tests.unit.lake.stories import silver_of


class Ingested:
    def __init__(self, spark: SparkSession, settings: Settings) -> None:
        self._spark = spark
        self._settings = settings
        self._batch = -1
        self._reached = dict.fromkeys(TOPICS, 0)
        self.events: list[Told] = []

    def take(self, events: Sequence[Told]) -> None:
        """One batch: a commit to each table, all saying the same."""
        self._batch += 1
        self.events += events
        for one in events:
            self._reached[one.topic] += 1
        commit = Commit("by-hand", self._batch, {topic: {"0": n} for topic, n in self._reached.items()})
        for table, rows in silver_of(self._spark, events).items():
            writer = rows.drop("batch").coalesce(1).write.format("delta").mode("append")
            writer.options(**commit.options(f"silver.{table}")).save(path_of(self._settings, f"silver.{table}"))
