"""The catalog describes the tables as they are: the same names, columns and types as Spark computes."""

import json

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession
from pyspark.sql.avro.functions import from_avro
from pyspark.sql.types import ArrayType, DataType, StructType

from analytics.catalog import ALL_TABLES, CORE_TABLES, GOLD_NAMES, all_tables, find_table
from analytics.catalog.avro_types import delta_type
from analytics.catalog.gold import GOLD as CATALOG_GOLD
from analytics.catalog.table import sql_type
from analytics.incremental.scope import Silver
from analytics.lake import LakeFiles
from analytics.log.commits import IngestCommit
from analytics.models import GOLD
from analytics.tables import create_missing, update_comments
from shared.schemas.contract.event_schemas import Schemas, load_schemas
from tests.unit.analytics.delta import commit, spark_type
from tests.unit.analytics.stories import silver_of

SCHEMAS = load_schemas()


@pytest.fixture
def undescribed(lake: LakeFiles) -> LakeFiles:
    """A lake whose gold.orders was written before there were comments."""
    lines = pa.list_(pa.struct([("sku", pa.string()), ("weight", pa.float64())]))
    schema = pa.schema([("order_id", pa.string()), ("own", pa.int64()), ("lines", lines)])
    row = {"order_id": "o", "own": 1, "lines": [{"sku": "MUG-1", "weight": 0.3}]}
    commit(lake, "gold.orders", [row], schema, offsets={"cart.events": {"0": 1}})
    return lake


def comments(lake: LakeFiles, table: str) -> dict[str, str]:
    fields = json.loads(lake.snapshot(table).schema().to_json())["fields"]
    return {field["name"]: field["metadata"].get("comment", "") for field in fields}


def nullable(kind: DataType) -> str:
    """Spells a type without nullability, which Delta does not keep."""
    if isinstance(kind, StructType):
        return f"struct<{', '.join(f'{field.name}: {nullable(field.dataType)}' for field in kind.fields)}>"
    if isinstance(kind, ArrayType):
        return f"array<{nullable(kind.elementType)}>"
    return kind.simpleString()


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


def test_new_tables_are_created_with_their_comments(lake: LakeFiles) -> None:
    create_missing(lake)
    found = comments(lake, "silver.cart_events")
    assert found["event_id"].startswith("Unique id of the event")
    assert found["item_added"]
    assert lake.snapshot("silver.cart_events").metadata().description.startswith("Every valid event of cart.events")
    versions = {name: lake.snapshot(name).version() for name in lake.tables()}
    create_missing(lake)
    update_comments(lake)
    assert {name: lake.snapshot(name).version() for name in lake.tables()} == versions, "nothing is written twice"


def test_tables_without_comments_get_them_once_and_keep_their_history(undescribed: LakeFiles) -> None:
    lake = undescribed
    update_comments(lake)
    assert comments(lake, "gold.orders") == {
        "order_id": "Id of the order, a UUID.",
        "own": "",
        "lines": "Ordered products, as placed.",
    }, "a column that is not in the catalog stays as it is"
    table = lake.snapshot("gold.orders")
    stored = json.loads(table.schema().to_json())["fields"][2]["type"]["elementType"]["fields"]
    assert [(field["name"], field["metadata"].get("comment")) for field in stored] == [
        ("sku", "SKU of the product."),
        ("weight", None),
    ], "fields of structs get comments, and no field is added"
    assert table.metadata().description.startswith("One row per order")
    assert table.to_pyarrow_table().num_rows == 1
    assert lake.snapshot("gold.orders", 0).to_pyarrow_table().num_rows == 1
    span = lake.log("gold.orders").newest(IngestCommit)
    assert span
    assert (span.version, span.latest) == (0, table.version()), "comments count to the commit before them"
    update_comments(lake)
    assert lake.snapshot("gold.orders").version() == table.version()


def test_a_new_event_type_becomes_a_column_of_an_existing_table(lake: LakeFiles) -> None:
    older = [s for s in SCHEMAS.all if str(s) not in ("cart/CartAbandoned.v2", "cart/QuantitySet.v1")]
    create_missing(lake, Schemas(older, SCHEMAS.upcasters))
    before = comments(lake, "silver.cart_events")
    assert "quantity_set" not in before
    create_missing(lake)
    stored = StructType.fromJson(json.loads(lake.snapshot("silver.cart_events").schema().to_json()))
    described = find_table("silver.cart_events")
    assert described
    assert {f.name: nullable(f.dataType) for f in stored.fields} == {
        f.name: nullable(f.dataType) for f in spark_type(described).fields
    }
