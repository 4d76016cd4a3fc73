"""The tables in Spark SQL: with their comments, and with the rows that readers without Spark see."""

from pathlib import Path

import pytest
from pyspark.sql import SparkSession
from pyspark.testing import assertDataFrameEqual

from analytics.catalog import TOPICS, find_table
from analytics.lake import Lake
from analytics.models.marts.abandoned_carts import abandoned_carts
from analytics.models.marts.carts import carts
from analytics.query.ask import ask
from analytics.serving.streaming_layer import refresh_gold
from analytics.tables import create_missing, update_comments
from infra.settings import Settings
from shared.schemas.contract.event_schemas import Schemas, load_schemas
from tests.integration.analytics.ingested import Ingested
from tests.integration.analytics.rows import plain
from tests.unit.analytics.delta import create_undescribed, missing_comments
from tests.unit.analytics.stories import MUG, Teller, told

pytestmark = pytest.mark.timeout(300)


def table_description(name: str) -> str:
    table = find_table(name)
    assert table
    return table.description


def test_spark_reads_a_table_to_which_a_new_event_type_was_added(
    spark: SparkSession, stack: Settings, tmp_path_factory: pytest.TempPathFactory
) -> None:
    lake = Lake(spark, stack.model_copy(update={"lake": str(tmp_path_factory.mktemp("lake"))}))
    today = load_schemas()
    older = [s for s in today.all if str(s) not in ("cart/CartAbandoned.v2", "cart/QuantitySet.v1")]
    create_missing(lake, Schemas(older, today.upcasters))
    before = lake.read("silver.cart_events").schema
    assert "quantity_set" not in before.names
    assert before["cart_abandoned"].dataType.simpleString() == "struct<idle_since:bigint>"
    create_missing(lake)
    after = lake.read("silver.cart_events").schema
    assert "quantity_set" in after.names
    assert after["cart_abandoned"].dataType.simpleString().startswith("struct<idle_since:bigint,lines:array<struct<sku")


def test_describe_shows_the_comments_in_spark_sql(filled_lake: Lake) -> None:
    described = filled_lake.spark.sql(f"DESCRIBE delta.`{filled_lake.path('silver.cart_events')}`")
    comments = {row["col_name"]: row["comment"] for row in described.collect()}
    assert comments["event_id"] == "Unique id of the event (header `ce_id`), a UUIDv7."
    assert all(comments[column] for column in filled_lake.read("silver.cart_events").columns)


def test_a_computed_column_has_its_own_comment_and_not_that_of_its_source(
    spark: SparkSession, stack: Settings, tmp_path: Path
) -> None:
    lake = Lake(spark, stack.model_copy(update={"lake": str(tmp_path)}))
    create_missing(lake)
    Ingested(lake).take(told(Teller("story").opens().adds(MUG)))
    assert refresh_gold(lake, tables=[abandoned_carts]) == {"abandoned_carts": "recomputed"}
    described = find_table("gold.abandoned_carts")
    assert described
    stored = {field.name: field.metadata.get("comment") for field in lake.read("gold.abandoned_carts").schema}
    assert stored == {column.name: column.description for column in described.columns}


def test_a_lake_of_an_earlier_release_gets_its_comments_and_goes_on(
    spark: SparkSession, stack: Settings, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Comments are commits between those of the ingest: a refresh reads on behind them, and recomputes nothing."""
    lake = Lake(spark, stack.model_copy(update={"lake": str(tmp_path)}))
    create_undescribed(lake, (f"silver.{table}" for table in TOPICS.values()))
    ingested = Ingested(lake)
    ingested.take([one for n in range(12) for one in told(Teller(f"before-{n}").opens().adds(MUG))])
    with monkeypatch.context() as earlier:
        earlier.setattr("analytics.incremental.merge.update_comments", lambda *_: None)
        earlier.setattr("analytics.incremental.merge.find_table", lambda *_: None)
        assert refresh_gold(lake, tables=[carts]) == {"carts": "recomputed"}
    assert "cart_id" in "".join(missing_comments(lake, "gold.carts"))
    update_comments(lake)
    ingested.take(told(Teller("after").opens().adds(MUG)))
    assert refresh_gold(lake, tables=[carts]) == {"carts": "changed"}
    assert lake.read("gold.carts").count() == 13
    for name in ("gold.carts", "silver.cart_events"):
        described = spark.sql(f"DESCRIBE EXTENDED delta.`{lake.path(name)}`").collect()
        comments = {row["col_name"]: row["comment"] for row in described}
        assert all(comments[column] for column in lake.read(name).columns)
        assert {row["col_name"]: row["data_type"] for row in described}["Comment"] == table_description(name)


def test_analysts_read_without_spark_what_spark_has_written(filled_lake: Lake) -> None:
    for table in TOPICS.values():
        frame = filled_lake.read(f"silver.{table}")
        named = ", ".join(f'"{column}"' for column in frame.columns)
        answer = ask(filled_lake, f"SELECT {named} FROM silver.{table}")
        assert plain(answer.rows) == plain(frame.collect())


def test_an_earlier_version_is_read_as_it_was(filled_lake: Lake) -> None:
    """The first version of a table is its creation."""
    assert filled_lake.read("silver.cart_events", 0).isEmpty()
    newest = filled_lake.snapshot("silver.cart_events").version()
    assertDataFrameEqual(
        filled_lake.read("silver.cart_events", newest).select("event_id"),
        filled_lake.read("silver.cart_events").select("event_id"),
    )
