"""Streamed, recomputed, served and replayed gold are the same rows; and where they are not, it is seen and mended."""

from collections.abc import Sequence
from dataclasses import replace
from datetime import timedelta

import pytest
from delta.tables import DeltaTable
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as sf
from uuid_utils import uuid7

from analytics.gold import GOLD
from analytics.gold.carts import CARTS
from analytics.gold.definition import Silver, Table
from analytics.gold.orders import ORDERS
from analytics.gold.sales import SALES, sales
from analytics.ingest.stream import ingest_available
from analytics.layers.batch import recompute
from analytics.layers.equality import Equality, verify
from analytics.layers.kappa import replay, undo
from analytics.layers.serving import serving
from analytics.layers.speed import bring_up_to_date
from analytics.layers.writing import state_of
from analytics.reading.asking import ask
from analytics.tables import path_of, read, register
from shared.errors import OperatorError
from shared.settings import Settings
from tests.integration.lake.conftest import NewLake
from tests.integration.lake.rows import plain
from tests.roll import NOON, Press, Told, numbered, shopping
from tests.unit.lake.payments import failed

TABLES: Sequence[Table] = GOLD

pytestmark = [pytest.mark.slow, pytest.mark.timeout(600)]


@pytest.fixture(scope="module")
def lake(spark: SparkSession, new_lake: NewLake, press: Press) -> Settings:
    """A batch layer of the morning; then events that came late or again, and more; and gold has seen it all."""
    settings = new_lake()
    told = [*shopping(6, start=NOON, seed=3), *suspicious("first")]
    late = [event for event in told if event.version == 2]
    press.send([event for event in told if event not in late])
    ingest_available(spark, settings)
    bring_up_to_date(spark, settings, tables=TABLES)
    recompute(spark, settings, tables=TABLES)
    press.send([*late, *told[:20], *shopping(2, start=NOON + timedelta(minutes=3), seed=5)])
    press.send(suspicious("second"))
    ingest_available(spark, settings)
    bring_up_to_date(spark, settings, tables=TABLES)
    return settings


def suspicious(who: str) -> list[Told]:
    """Payments that are declined often enough for an alert."""
    name = f"{who}-{uuid7()}"
    return numbered(it for n in range(5) for it in failed(f"{name}-{n}", name, n))


def wrong(equality: Equality) -> list[str]:
    return [verdict.name for verdict in equality.verdicts if not verdict.equal]


def test_what_was_streamed_and_what_is_served_is_what_a_batch_computes(spark: SparkSession, lake: Settings) -> None:
    found = verify(spark, lake, tables=TABLES)
    assert wrong(found) == []
    names = {verdict.name for verdict in found.verdicts}
    assert names == {f"{layer}.{table.name}" for layer in ("gold", "serving") for table in TABLES}
    assert all(verdict.difference.rows for verdict in found.verdicts), "without rows, nothing is proved"


@pytest.mark.parametrize("table", TABLES, ids=lambda table: table.name)
def test_analysts_are_served_the_same_rows_without_spark(spark: SparkSession, lake: Settings, table: Table) -> None:
    served = serving(spark, lake, table)
    assert served is not None
    named = ", ".join(f'"{column}"' for column in served.columns)
    answer = ask(lake, f"SELECT {named} FROM serving.{table.name}")
    assert plain(answer.rows) == plain(served.collect())


def test_what_is_served_is_known_by_name_in_spark_sql(spark: SparkSession, lake: Settings) -> None:
    register(spark, lake)
    revenue = "SELECT sum(revenue) AS revenue, sum(net_revenue) AS net FROM {}.sales_per_minute"
    assert spark.sql(revenue.format("serving")).collect() == spark.sql(revenue.format("gold")).collect()
    assert spark.table("serving.orders").count() == spark.table("gold.orders").count()


def test_the_speed_layer_has_only_what_was_touched_since_the_batch(spark: SparkSession, lake: Settings) -> None:
    speed, gold = read(spark, lake, "speed.carts").count(), read(spark, lake, "gold.carts").count()
    assert 0 < speed <= gold
    assert read(spark, lake, "batch.carts").count() < gold


def test_while_a_new_batch_is_not_caught_up_with_the_old_one_is_served(spark: SparkSession, lake: Settings) -> None:
    before = state_of(lake, "speed.carts")
    recompute(spark, lake, tables=[CARTS])
    served = serving(spark, lake, CARTS)
    assert before
    assert served is not None
    assert served.count() == read(spark, lake, "gold.carts").count()
    bring_up_to_date(spark, lake, tables=[CARTS])
    after = state_of(lake, "speed.carts")
    assert after
    assert after.said["base"] > before.said["base"]
    assert read(spark, lake, "speed.carts").count() == 0


def test_a_wrong_row_is_shown_and_a_replay_mends_it(spark: SparkSession, lake: Settings) -> None:
    order = read(spark, lake, "gold.orders").where("status = 'confirmed'").first()
    assert order
    target = DeltaTable.forPath(spark, path_of(lake, "gold.orders"))
    target.update(sf.col("order_id") == order["order_id"], {"total": sf.col("total") + 1})

    found = verify(spark, lake, tables=[ORDERS, SALES])
    assert wrong(found) == ["gold.orders"]
    [verdict] = [verdict for verdict in found.verdicts if not verdict.equal]
    shown = {row["side"]: (row["order_id"], row["total"]) for row in verdict.difference.shown}
    assert shown == {"this": (order["order_id"], order["total"] + 1), "other": (order["order_id"], order["total"])}

    mended = replay(spark, lake, "orders", tables=TABLES)
    assert mended.swapped
    assert mended.difference
    assert (mended.difference.added, mended.difference.gone, mended.difference.changed) == (0, 0, 1)
    assert wrong(verify(spark, lake, tables=[ORDERS])) == []


def doubled(silver: Silver) -> DataFrame:
    return sales(silver).withColumn("revenue", sf.col("revenue") * 2)


OTHERWISE: list[Table] = [replace(SALES, facts=doubled, version=2)]


def test_another_logic_is_replayed_from_kafka_and_can_be_taken_back(spark: SparkSession, lake: Settings) -> None:
    revenue = _revenue(spark, lake)
    assert bring_up_to_date(spark, lake, tables=OTHERWISE) == {"sales_per_minute": "waits for a replay"}

    found = replay(spark, lake, "sales_per_minute", source="kafka", tables=OTHERWISE)
    assert found.difference
    assert found.difference.changed > 0
    assert _revenue(spark, lake) == 2 * revenue
    assert bring_up_to_date(spark, lake, tables=[SALES]) == {"sales_per_minute": "waits for a replay"}

    undo(spark, lake, "sales_per_minute", tables=OTHERWISE)
    assert _revenue(spark, lake) == revenue
    with pytest.raises(OperatorError, match="no replay that could be undone"):
        undo(spark, lake, "sales_per_minute", tables=OTHERWISE)


def test_a_replay_that_dies_has_touched_nothing_and_begins_anew(spark: SparkSession, lake: Settings) -> None:
    before = state_of(lake, "gold.carts")

    def dies(line: str) -> None:
        if "added" in line:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        replay(spark, lake, "carts", progress=dies, tables=TABLES)
    assert state_of(lake, "gold.carts") == before
    assert replay(spark, lake, "carts", tables=TABLES).swapped


def _revenue(spark: SparkSession, lake: Settings) -> int:
    row = read(spark, lake, "gold.sales_per_minute").agg(sf.sum("revenue")).first()
    assert row
    total: int = row[0]
    return total
