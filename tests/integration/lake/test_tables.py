"""The tables themselves: created once, widened when an event is new, and known by name."""

import pytest
from pyspark.sql import SparkSession

from analytics.tables import create_missing, read, register
from shared.schemas import Schemas, load_schemas
from shared.settings import Settings
from tests.roll import Told

pytestmark = [pytest.mark.slow, pytest.mark.timeout(600)]


def test_an_event_that_is_new_gets_its_column_in_a_table_that_is_there(
    spark: SparkSession, stack: Settings, tmp_path_factory: pytest.TempPathFactory
) -> None:
    settings = stack.model_copy(update={"lake": str(tmp_path_factory.mktemp("lake"))})
    today = load_schemas()
    older = [s for s in today.all if str(s) not in ("cart/CartAbandoned.v2", "cart/QuantitySet.v1")]
    create_missing(spark, settings, Schemas(older, today.upcasters))
    before = read(spark, settings, "silver.cart_events").schema
    assert "quantity_set" not in before.names
    assert before["cart_abandoned"].dataType.simpleString() == "struct<idle_since:bigint>"
    create_missing(spark, settings)
    after = read(spark, settings, "silver.cart_events").schema
    assert "quantity_set" in after.names
    assert after["cart_abandoned"].dataType.simpleString().startswith("struct<idle_since:bigint,lines:array<struct<sku")


def test_tables_are_known_by_name_in_spark_sql(spark: SparkSession, filled_lake: Settings, story: list[Told]) -> None:
    register(spark, filled_lake)
    [row] = spark.sql("SELECT count(DISTINCT event_id) AS events FROM silver.cart_events").collect()
    assert row["events"] >= len([told for told in story if told.topic == "cart.events"])
