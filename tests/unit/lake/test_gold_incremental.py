"""However the events come, in whatever order and batches: gold that was brought up to date is what a batch computes."""

import random
from dataclasses import replace

import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as sf

from analytics.gold import GOLD
from analytics.gold.carts import CARTS
from analytics.gold.definition import Silver, Table
from analytics.gold.orders import ORDERS
from analytics.gold.shopping import SHOPPING, touched_carts
from tests.unit.lake.stories import eventful, silver_of
from tests.unit.lake.streaming import Streamed, computed, kept, small, without_derived

BATCHES = 4
SHOPPING_TABLES = [table for table in GOLD if table.scope is SHOPPING]


@pytest.fixture(scope="module")
def shuffled(spark: SparkSession) -> dict[str, DataFrame]:
    """An eventful day, its events dealt out to batches as if there were neither time nor order."""
    events, chance = eventful(seed=4), random.Random(4)
    silver = silver_of(small(spark), events, [chance.randrange(BATCHES) for _ in events])
    return {table: kept(frame) for table, frame in silver.items()}


def streamed(spark: SparkSession, silver: Silver, tables: list[Table]) -> Streamed:
    stream = Streamed(small(spark), tables)
    for number in range(BATCHES):
        new = {table: frame.where(sf.col("batch") == number).drop("batch") for table, frame in silver.items()}
        older = {table: frame.where(sf.col("batch") < number).drop("batch") for table, frame in silver.items()}
        stream.take(new, older)
    return stream


def test_a_stream_in_any_order_comes_to_what_a_batch_computes(
    spark: SparkSession, shuffled: dict[str, DataFrame]
) -> None:
    batch = computed(SHOPPING_TABLES, {table: frame.drop("batch") for table, frame in shuffled.items()})
    assert all(batch[table.name] for table in SHOPPING_TABLES), "a table without rows would prove nothing"
    stream = streamed(spark, shuffled, SHOPPING_TABLES)
    assert stream.rows == without_derived(SHOPPING_TABLES, batch)


@pytest.mark.slow
def test_a_unit_that_is_not_seen_to_be_touched_makes_a_difference(
    spark: SparkSession, shuffled: dict[str, DataFrame]
) -> None:
    """Planted: carts that had something put in are forgotten."""

    def forgetful(new: Silver, _rows: Silver) -> DataFrame:
        return touched_carts({"cart_moves": new["cart_moves"].where("kind <> 'ItemAdded'")})

    wrong: list[Table] = [replace(CARTS, touched=forgetful), ORDERS]
    batch = computed(wrong, {table: frame.drop("batch") for table, frame in shuffled.items()})
    assert streamed(spark, shuffled, wrong).rows != batch
