"""Small files become large ones, old versions go when their time is over, and nothing that can be read changes."""

from pathlib import Path

import pytest
from deltalake import DeltaTable
from pyspark.sql import SparkSession

from analytics.care import EVERY, STREAMED, optimize, tidy, vacuum
from analytics.commits import newest
from analytics.ingest.stream import ingest_available
from analytics.paths import path_of
from analytics.tables import read, table_names
from shared.settings import Settings
from tests.integration.lake.conftest import NewLake
from tests.roll import Press, Told, shopping

pytestmark = [pytest.mark.slow, pytest.mark.timeout(600)]


def files(settings: Settings, name: str) -> int:
    return len(DeltaTable(path_of(settings, name)).file_uris())


@pytest.fixture(scope="module")
def streamed(spark: SparkSession, new_lake: NewLake, press: Press, story: list[Told]) -> Settings:
    """A lake that has taken its events in many small batches."""
    press.send(shopping(4))
    settings = new_lake().model_copy(update={"lake_batch_events": 400})
    with pytest.MonkeyPatch.context() as often:
        often.setattr("analytics.care.EVERY", 1)
        ingest_available(spark, settings)
    return settings


def test_a_batch_is_as_many_files_as_it_is_worth(
    streamed: Settings, spark: SparkSession, new_lake: NewLake, monkeypatch: pytest.MonkeyPatch
) -> None:
    small, large = new_lake(), new_lake()
    ingest_available(spark, small)
    monkeypatch.setattr("analytics.ingest.batches.FILE_EVENTS", 1)
    ingest_available(spark, large)
    assert files(small, "bronze.events") == 1
    assert files(large, "bronze.events") >= min(2, spark.sparkContext.defaultParallelism)


def test_while_it_streams_small_files_stay_few(streamed: Settings) -> None:
    last = newest(streamed, "silver.cart_events")
    assert last
    assert last.said["batch"] >= 2
    assert files(streamed, "silver.cart_events") == 1
    assert files(streamed, "bronze.events") == 1


def test_each_table_has_its_turn_once_in_so_many_batches(
    spark: SparkSession, streamed: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    turns: list[str] = []
    monkeypatch.setattr("analytics.care.optimize", lambda _spark, _settings, names: turns.extend(names))
    for batch in range(1, EVERY + 1):
        tidy(spark, streamed, batch)
    assert sorted(turns) == sorted(STREAMED)


def test_after_compaction_and_vacuum_every_version_can_still_be_read(streamed: Settings, spark: SparkSession) -> None:
    before = newest(streamed, "silver.cart_events")
    assert before
    rows = read(spark, streamed, "silver.cart_events", before.number).count()
    assert {"bronze.events", "silver.cart_events", "silver.quarantine"} <= set(table_names(spark, streamed))
    optimize(spark, streamed, ["bronze.events", "silver.cart_events"], ordered=True)
    assert files(streamed, "bronze.events") == files(streamed, "silver.cart_events") == 1
    vacuum(spark, streamed, ["silver.cart_events"])
    assert read(spark, streamed, "silver.cart_events", before.number).count() == rows
    assert read(spark, streamed, "silver.cart_events").count() == rows
    assert newest(streamed, "silver.cart_events") == before, "a compaction says nothing of Kafka"


def test_vacuum_lets_go_of_what_is_older_than_the_history_that_is_kept(streamed: Settings, spark: SparkSession) -> None:
    name = "silver.cart_events"
    needed = {Path(file).name for file in DeltaTable(path_of(streamed, name)).file_uris()}
    assert _on_disk(streamed, name) > needed
    spark.conf.set("spark.databricks.delta.retentionDurationCheck.enabled", "false")
    vacuum(spark, streamed.model_copy(update={"lake_history_days": 0}), [name])
    spark.conf.unset("spark.databricks.delta.retentionDurationCheck.enabled")
    assert _on_disk(streamed, name) == needed


def _on_disk(lake: Settings, name: str) -> set[str]:
    return {file.name for file in Path(path_of(lake, name)).glob("*.parquet")}
