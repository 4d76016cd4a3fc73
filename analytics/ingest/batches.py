"""Writes one micro-batch: all of it to bronze, each topic's events to silver, and what cannot be read to quarantine."""

from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import reduce

from pyspark import inheritable_thread_target
from pyspark.sql import DataFrame

from analytics.catalog import TOPICS
from analytics.catalog.events import QUARANTINE
from analytics.catalog.table import names
from analytics.ingest import recovery
from analytics.ingest.bronze import bronze_rows
from analytics.ingest.deduplication import contradictions, earlier_events, with_first_occurrence
from analytics.ingest.first_look import FirstLook, look_at, schema_ids
from analytics.ingest.quarantine import invalid_messages
from analytics.ingest.silver import silver_columns, valid_events
from analytics.ingest.writer_schemas import WriterSchemas, fetch_missing, load_writer_schemas
from analytics.lake import Lake
from analytics.log.commits import IngestCommit
from analytics.log.offsets import Offsets, total
from analytics.log.progress import rows_written
from analytics.maintenance import compact_in_turn
from shared.recovery.crash_points import crashpoint

FILE_EVENTS = 20_000
"""Events per file of a batch. Smaller files cost more to write, and again when they are compacted."""


@dataclass(frozen=True)
class PlannedBatch:
    """A batch before it is written to silver."""

    rows: DataFrame
    looks: Mapping[str, FirstLook]
    writers: WriterSchemas
    new: Mapping[str, DataFrame]
    """Events to be added to silver, by topic."""


class Batches:
    """Writes the micro-batches of one generation of the ingest."""

    def __init__(self, lake: Lake, generation: str, topics: Mapping[str, str]) -> None:
        self._lake = lake
        self._generation = generation
        self._topics = topics
        self._writers = load_writer_schemas(lake)

    def write(self, batch: DataFrame, number: int) -> None:
        """Writes a batch to all tables. After a crash Spark offers the same batch again."""
        ends = recovery.planned_end(self._lake, self._generation, number)
        assert ends is not None, "Spark begins a batch only when it has written down where it ends"
        commit = IngestCommit(self._generation, number, ends, self._topics)
        rows = bronze_rows(batch).coalesce(self._files(number, ends)).persist()
        try:
            # Nothing of the batch is written: it is taken again.
            crashpoint("batch planned, nothing written")
            with ThreadPoolExecutor(1) as pool:
                planned = pool.submit(inheritable_thread_target(self._lake.spark)(self._plan), rows)
                self._append(rows, "bronze.events", commit)
            # Bronze has it: taken again, Delta knows the batch by its number and ignores it there.
            crashpoint("bronze written, silver not")
            self._write_silver(planned.result(), commit)
            # All is written: taken again, every table ignores it.
            crashpoint("all written, checkpoint not")
        finally:
            rows.unpersist()
        compact_in_turn(self._lake, number)

    def write_silver(self, rows: DataFrame, commit: IngestCommit) -> None:
        """Writes to silver a batch that bronze has. One that was interrupted may be written again."""
        self._write_silver(self._plan(rows), commit)

    def _files(self, number: int, ends: Offsets) -> int:
        """Chooses how many files each table gets: by the size of the batch, and no more than there are cores."""
        before = recovery.planned_end(self._lake, self._generation, number - 1) or {}
        events = total(ends) - total(before)
        return min(self._lake.spark.sparkContext.defaultParallelism, 1 + events // FILE_EVENTS)

    def _plan(self, rows: DataFrame) -> PlannedBatch:
        """Plans the decoding, which takes seconds. Writes nothing of the batch, so bronze is written meanwhile."""
        looks = look_at(rows, self._lake)
        self._writers = writers = fetch_missing(self._lake, self._writers, schema_ids(looks))
        new = {topic: self._new_events(rows, topic, looks.get(topic), writers) for topic in TOPICS}
        return PlannedBatch(rows, looks, writers, new)

    def _new_events(self, rows: DataFrame, topic: str, look: FirstLook | None, writers: WriterSchemas) -> DataFrame:
        """Selects a topic's valid events that silver does not have."""
        if look is None:
            return self._lake.read(f"silver.{TOPICS[topic]}").limit(0)
        new = valid_events(rows, topic, writers)
        if look.has_repeats:
            new = self._with_first_occurrence(rows, topic, look, writers).where("first IS NULL")
        return new.select(*silver_columns(topic, writers))

    def _write_silver(self, planned: PlannedBatch, commit: IngestCommit) -> None:
        # Every table gets a commit of each batch, even an empty one: a batch that all tables have is complete, and
        # gold is computed up to that.
        write = inheritable_thread_target(self._lake.spark)(self._write_topic)
        with ThreadPoolExecutor(len(TOPICS)) as pool:
            all_taken = [*pool.map(lambda topic: write(planned, topic, commit), TOPICS)]
        incomplete = [topic for topic, taken in zip(TOPICS, all_taken, strict=True) if not taken]
        if incomplete:
            # Silver has what it can take. What it cannot is found again, from the same rows.
            crashpoint("silver written, quarantine not")
            self._write_quarantine(planned, incomplete, commit)

    def _write_topic(self, planned: PlannedBatch, topic: str, commit: IngestCommit) -> bool:
        """Writes a topic's events and returns whether these were all of its messages."""
        table = f"silver.{TOPICS[topic]}"
        self._append(planned.new[topic], table, commit)
        return topic not in planned.looks or rows_written(self._lake, table, commit) == planned.looks[topic].rows

    def _with_first_occurrence(self, rows: DataFrame, topic: str, look: FirstLook, writers: WriterSchemas) -> DataFrame:
        earlier = earlier_events(self._lake, TOPICS[topic], look.prefixes)
        return with_first_occurrence(valid_events(rows, topic, writers), earlier)

    def _write_quarantine(self, planned: PlannedBatch, topics: list[str], commit: IngestCommit) -> None:
        bronze = self._lake.read("bronze.events")
        frames = []
        for topic in topics:
            events = self._with_first_occurrence(planned.rows, topic, planned.looks[topic], planned.writers)
            repeated = events.where("first IS NOT NULL")
            frames += [
                invalid_messages(planned.rows, topic, planned.writers),
                contradictions(repeated, bronze).select(*names(QUARANTINE)),
            ]
        rejected = reduce(DataFrame.union, frames).persist()
        try:
            if not rejected.isEmpty():
                self._append(rejected, "silver.quarantine", commit)
        finally:
            rejected.unpersist()

    def _append(self, rows: DataFrame, table: str, commit: IngestCommit) -> None:
        writer = rows.write.format("delta").mode("append").options(**commit.write_options(table))
        writer.save(self._lake.path(table))
