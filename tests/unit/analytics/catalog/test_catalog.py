"""The catalog describes the tables as they are: the same names, columns and types as Spark computes."""

import pytest
from pyspark.sql import SparkSession
from pyspark.sql.avro.functions import from_avro

from analytics.catalog import ALL_TABLES, CORE_TABLES, GOLD_NAMES, all_tables, find_table
from analytics.catalog.avro_types import delta_type
from analytics.catalog.gold import GOLD as CATALOG_GOLD
from analytics.catalog.table import sql_type
from analytics.incremental.scope import Silver
from analytics.models import GOLD
from shared.schemas.contract.event_schemas import load_schemas
from tests.unit.analytics.delta import nullable
from tests.unit.analytics.stories import silver_of

SCHEMAS = load_schemas()


def test_every_gold_table_is_in_the_catalog_with_its_key_and_its_description() -> None:
    assert tuple(table.name for table in GOLD) == GOLD_NAMES
    declared = {f"gold.{table.name}": (table.key, table.description) for table in GOLD}
    assert {table.name: (table.key, table.description) for table in CATALOG_GOLD} == declared


@pytest.mark.timeout(180)
def test_gold_has_the_columns_and_types_that_the_catalog_describes(spark: SparkSession) -> None:
    silver = Silver(silver_of(spark, []))
    for table in GOLD:
        described = find_table(f"gold.{table.name}")
        assert described
        computed = table.compute(table.scope.inputs(table.scope.stage(silver))).schema
        assert {f.name: nullable(f.dataType) for f in computed.fields} == {
            column.name: sql_type(column.type) for column in described.columns
        }, table.name


@pytest.mark.timeout(120)
def test_spark_decodes_every_event_to_the_type_that_the_catalog_says(spark: SparkSession) -> None:
    nothing = spark.createDataFrame([], "body binary")
    for schema in SCHEMAS.all:
        decoded = nothing.select(from_avro("body", schema.text)).schema[0].dataType
        assert nullable(decoded) == sql_type(delta_type(schema.definition)), str(schema)


def test_names_are_unique_and_every_stored_table_can_be_found() -> None:
    assert len(set(ALL_TABLES)) == len(ALL_TABLES)
    assert {table.name for table in all_tables()} == set(CORE_TABLES)
    assert all(find_table(name) for name in ALL_TABLES)
    assert find_table("gold.nothing") is None
    assert find_table("serving.orders") is not None
