"""Tables are created as the catalog describes them, and tables that exist get new columns and comments."""

import json

import pyarrow as pa
import pytest
from pyspark.sql.types import StructType

from analytics.catalog import ALL_TABLES, find_table
from analytics.lake import LakeFiles
from analytics.log.commits import IngestCommit
from analytics.tables import create_missing, update_comments
from shared.schemas.contract.event_schemas import Schemas, load_schemas
from tests.unit.analytics.delta import commit, create_undescribed, missing_comments, nullable, spark_type

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


def test_every_table_of_an_earlier_release_gets_its_comments(lake: LakeFiles) -> None:
    create_undescribed(lake, ALL_TABLES)
    assert all(missing_comments(lake, name) for name in ALL_TABLES)
    update_comments(lake)
    assert {name: missing for name in ALL_TABLES if (missing := missing_comments(lake, name))} == {}


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


def test_a_comment_that_changed_is_replaced(lake: LakeFiles) -> None:
    create_missing(lake)
    current = comments(lake, "silver.cart_events")
    lake.snapshot("silver.cart_events").alter.set_column_metadata("event_id", {"comment": "An earlier wording."})
    update_comments(lake)
    assert comments(lake, "silver.cart_events") == current
    lake.snapshot("silver.cart_events").alter.set_column_metadata("event_id", {"comment": "An earlier wording."})
    create_missing(lake)
    assert comments(lake, "silver.cart_events") == current


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
