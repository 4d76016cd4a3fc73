"""What is done with each batch of the ingest: all of it to bronze, each topic's events to silver, the rest aside."""

from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import reduce

from pyspark import inheritable_thread_target
from pyspark.sql import DataFrame, SparkSession

from analytics import commits
from analytics.care import tidy
from analytics.commits import Commit, Offsets
from analytics.ingest import recovery
from analytics.ingest.bronze import bronze_rows
from analytics.ingest.duplicates import before, contradictions, told_apart
from analytics.ingest.glance import Glance, glances, met
from analytics.ingest.quarantine import unsound
from analytics.ingest.silver import silver_columns, sound
from analytics.ingest.writers import Writers, known, learned
from analytics.tables import QUARANTINE, TOPICS, path_of, read
from shared.crashpoints import crashpoint
from shared.settings import Settings

FILE_EVENTS = 20_000
"""Fewer than these are not worth a second file: it costs more to write, and again when small files are put together."""


@dataclass(frozen=True)
class Seen:
    """A batch, and what is to become of it."""

    rows: DataFrame
    found: Mapping[str, Glance]
    writers: Writers
    new: Mapping[str, DataFrame]
    """By topic, what is to be added to its table."""


class Batches:
    def __init__(self, spark: SparkSession, settings: Settings, generation: str, topics: Mapping[str, str]) -> None:
        self._spark = spark
        self._settings = settings
        self._generation = generation
        self._topics = topics
        self._writers = known(spark, settings)

    def take(self, batch: DataFrame, number: int) -> None:
        ends = recovery.planned(self._spark, self._settings, self._generation, number)
        assert ends is not None, "Spark begins a batch only when it has written down where it ends"
        commit = Commit(self._generation, number, ends, self._topics)
        rows = bronze_rows(batch).coalesce(self._files(number, ends)).persist()
        try:
            # Nothing of the batch is written: it is taken again.
            crashpoint("batch planned, nothing written")
            with ThreadPoolExecutor(1) as pool:
                seen = pool.submit(inheritable_thread_target(self._spark)(self._look), rows)
                self._append(rows, "bronze.events", commit)
            # Bronze has it: taken again, Delta knows the batch by its number and ignores it there.
            crashpoint("bronze written, silver not")
            self._write(seen.result(), commit)
            # All is written: taken again, every table ignores it.
            crashpoint("all written, checkpoint not")
        finally:
            rows.unpersist()
        tidy(self._spark, self._settings, number)

    def _files(self, number: int, ends: Offsets) -> int:
        """That each table gets of a batch: not as many as partitions of topics, and no more than cores."""
        before = recovery.planned(self._spark, self._settings, self._generation, number - 1) or {}
        events = _total(ends) - _total(before)
        return min(self._spark.sparkContext.defaultParallelism, 1 + events // FILE_EVENTS)

    def silver(self, rows: DataFrame, commit: Commit) -> None:
        """Of a batch that bronze has. One that was cut off in the middle may be given again."""
        self._write(self._look(rows), commit)

    def _look(self, rows: DataFrame) -> Seen:
        """Writes nothing of the batch: bronze may be at it meanwhile. To plan what is decoded takes seconds."""
        found = glances(rows, self._settings)
        self._writers = writers = learned(self._spark, self._settings, self._writers, met(found))
        new = {topic: self._new(rows, topic, found.get(topic), writers) for topic in TOPICS}
        return Seen(rows, found, writers, new)

    def _new(self, rows: DataFrame, topic: str, glance: Glance | None, writers: Writers) -> DataFrame:
        """A topic's events that silver does not have."""
        if glance is None:
            return read(self._spark, self._settings, f"silver.{TOPICS[topic]}").limit(0)
        new = sound(rows, topic, writers)
        if glance.repeats:
            new = self._apart(rows, topic, glance, writers).where("first IS NULL")
        return new.select(*silver_columns(topic, writers))

    def _write(self, seen: Seen, commit: Commit) -> None:
        # Every table gets a commit of each batch, be it an empty one: a batch that all of them have is complete, and
        # gold goes by that.
        write = inheritable_thread_target(self._spark)(self._silver)
        with ThreadPoolExecutor(len(TOPICS)) as pool:
            left = [*pool.map(lambda topic: write(seen, topic, commit), TOPICS)]
        short = [topic for topic, is_short in zip(TOPICS, left, strict=True) if is_short]
        if short:
            # Silver has what it can take. What it cannot is found again, from the same rows.
            crashpoint("silver written, quarantine not")
            self._quarantine(seen, short, commit)

    def _silver(self, seen: Seen, topic: str, commit: Commit) -> bool:
        """Whether some rows were left over."""
        table = f"silver.{TOPICS[topic]}"
        self._append(seen.new[topic], table, commit)
        return topic in seen.found and commits.rows_written(self._settings, table, commit) != seen.found[topic].rows

    def _apart(self, rows: DataFrame, topic: str, glance: Glance, writers: Writers) -> DataFrame:
        earlier = before(self._spark, self._settings, TOPICS[topic], glance.prefixes)
        return told_apart(sound(rows, topic, writers), earlier)

    def _quarantine(self, seen: Seen, topics: list[str], commit: Commit) -> None:
        bronze = read(self._spark, self._settings, "bronze.events")
        frames = []
        for topic in topics:
            later = self._apart(seen.rows, topic, seen.found[topic], seen.writers).where("first IS NOT NULL")
            frames += [unsound(seen.rows, topic, seen.writers), contradictions(later, bronze).select(*QUARANTINE)]
        aside = reduce(DataFrame.union, frames).persist()
        try:
            if not aside.isEmpty():
                self._append(aside, "silver.quarantine", commit)
        finally:
            aside.unpersist()

    def _append(self, rows: DataFrame, table: str, commit: Commit) -> None:
        writer = rows.write.format("delta").mode("append").options(**commit.options(table))
        writer.save(path_of(self._settings, table))


def _total(offsets: Offsets) -> int:
    return sum(offset for partitions in offsets.values() for offset in partitions.values())
