"""Maintenance compacts small files and deletes old ones; what can be read stays the same."""

from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from analytics.ingest.stream import ingest_available
from analytics.lake import Lake
from analytics.log.commits import IngestCommit
from analytics.log.progress import current_cut
from analytics.maintenance import COMPACT_EVERY, STREAMED, compact_in_turn, optimize, stored_tables, vacuum
from tests.integration.analytics.conftest import NewLake
from tests.integration.analytics.ingested import Ingested
from tests.roll import Press, ShopEvent, shopping

pytestmark = pytest.mark.timeout(600)


def files(lake: Lake, name: str) -> int:
    return len(lake.snapshot(name).file_uris())


def test_compaction_changes_neither_rows_nor_progress(new_lake: NewLake) -> None:
    """The short version of this module, on silver that is written without Kafka."""
    lake = new_lake()
    ingested = Ingested(lake)
    for seed in range(2):
        ingested.take(shopping(2, seed=seed))
    name, cut = "silver.cart_events", current_cut(lake)
    rows = sorted(row["event_id"] for row in lake.read(name).select("event_id").collect())
    assert files(lake, name) == 2
    [done] = optimize(lake, [name])
    assert (done.removed, done.added, files(lake, name)) == (2, 1, 1)
    assert sorted(row["event_id"] for row in lake.read(name).select("event_id").collect()) == rows
    after = current_cut(lake)
    assert cut
    assert after
    assert (after.batch, after.offsets) == (cut.batch, cut.offsets)
    assert after.silver["cart_events"] == cut.silver["cart_events"] + 1, "the compaction shows the same batch"
    assert lake.read(name, cut.silver["cart_events"]).count() == len(rows)


@pytest.fixture(scope="module")
def streamed(spark: SparkSession, new_lake: NewLake, press: Press, story: list[ShopEvent]) -> Lake:
    """A lake that has ingested its events in many small batches."""
    press.send(shopping(4))
    lake = Lake(spark, new_lake().settings.model_copy(update={"lake_batch_events": 400}))
    with pytest.MonkeyPatch.context() as often:
        often.setattr("analytics.maintenance.COMPACT_EVERY", 1)
        ingest_available(lake)
    return lake


@pytest.mark.slow
def test_a_large_batch_is_written_to_several_files_and_a_small_one_to_one(
    streamed: Lake, spark: SparkSession, new_lake: NewLake, monkeypatch: pytest.MonkeyPatch
) -> None:
    small, large = new_lake(), new_lake()
    ingest_available(small)
    monkeypatch.setattr("analytics.ingest.batches.FILE_EVENTS", 1)
    ingest_available(large)
    assert files(small, "bronze.events") == 1
    assert files(large, "bronze.events") >= min(2, spark.sparkContext.defaultParallelism)


@pytest.mark.slow
def test_streaming_keeps_the_number_of_files_small(streamed: Lake) -> None:
    last = streamed.log("silver.cart_events").newest(IngestCommit)
    assert last
    assert last.commit.batch >= 2
    assert files(streamed, "silver.cart_events") == 1
    assert files(streamed, "bronze.events") == 1


@pytest.mark.slow
def test_each_table_is_compacted_once_in_a_while(
    spark: SparkSession, streamed: Lake, monkeypatch: pytest.MonkeyPatch
) -> None:
    turns: list[str] = []
    monkeypatch.setattr("analytics.maintenance.optimize", lambda _lake, names: turns.extend(names))
    for batch in range(1, COMPACT_EVERY + 1):
        compact_in_turn(streamed, batch)
    assert sorted(turns) == sorted(STREAMED)


@pytest.mark.slow
def test_after_compaction_and_vacuum_every_version_can_still_be_read(streamed: Lake, spark: SparkSession) -> None:
    before = streamed.log("silver.cart_events").newest(IngestCommit)
    assert before
    rows = streamed.read("silver.cart_events", before.version).count()
    assert {"bronze.events", "silver.cart_events", "silver.quarantine"} <= set(stored_tables(streamed))
    optimize(streamed, ["bronze.events", "silver.cart_events"], ordered=True)
    assert files(streamed, "bronze.events") == files(streamed, "silver.cart_events") == 1
    vacuum(streamed, ["silver.cart_events"])
    assert streamed.read("silver.cart_events", before.version).count() == rows
    assert streamed.read("silver.cart_events").count() == rows
    after = streamed.log("silver.cart_events").newest(IngestCommit)
    assert after
    assert (after.version, after.commit) == (before.version, before.commit), "a compaction records no offsets"


@pytest.mark.slow
def test_vacuum_deletes_files_that_are_older_than_the_kept_history(streamed: Lake, spark: SparkSession) -> None:
    name = "silver.cart_events"
    needed = {Path(file).name for file in streamed.snapshot(name).file_uris()}
    assert _on_disk(streamed, name) > needed
    spark.conf.set("spark.databricks.delta.retentionDurationCheck.enabled", "false")
    vacuum(Lake(spark, streamed.settings.model_copy(update={"lake_history_days": 0})), [name])
    spark.conf.unset("spark.databricks.delta.retentionDurationCheck.enabled")
    assert _on_disk(streamed, name) == needed


def _on_disk(lake: Lake, name: str) -> set[str]:
    return {file.name for file in Path(lake.path(name)).glob("*.parquet")}
