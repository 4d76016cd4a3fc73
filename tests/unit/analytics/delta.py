"""Small lakes of real Delta tables, written without Spark. Commits record the offsets they have reached."""

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
from deltalake import CommitProperties, DeltaTable, Schema, write_deltalake
from pyspark.sql.types import StructType

from analytics.catalog import Table, find_table
from analytics.lake import LakeFiles
from analytics.log.commits import IngestCommit

MONEY = pa.struct([("amount", pa.int64()), ("currency", pa.string())])
ITEM = pa.struct([("sku", pa.string()), ("quantity", pa.int32()), ("unit_price", MONEY)])
EVENTS = pa.schema(
    [
        ("event_id", pa.string()),
        ("event_type", pa.string()),
        ("event_time", pa.timestamp("us", "UTC")),
        ("offset", pa.int64()),
        ("value", pa.binary()),
        ("item_added", ITEM),
    ]
)


def spark_type(table: Table) -> StructType:
    """Returns a table's columns as Spark's type."""
    return StructType.fromJson(json.loads(table.schema_json()))


def create(lake: LakeFiles, name: str) -> None:
    """Creates a table without rows, as the catalog describes it."""
    table = find_table(name)
    assert table
    DeltaTable.create(lake.path(name), Schema.from_json(table.schema_json()))


def insert(lake: LakeFiles, name: str, rows: Sequence[Mapping[str, Any]]) -> None:
    """Appends rows to a table; columns that a row lacks are null."""
    schema: Any = lake.snapshot(name).to_pyarrow_dataset().schema
    write_deltalake(lake.path(name), pa.Table.from_pylist(list(rows), schema=schema), mode="append")


def commit(
    lake: LakeFiles,
    name: str,
    rows: Sequence[Mapping[str, Any]],
    schema: pa.Schema = EVENTS,
    offsets: Mapping[str, Mapping[str, int]] | None = None,
    **options: Any,
) -> int:
    """Appends rows in one commit and returns the number of the new version."""
    metadata = {"userMetadata": IngestCommit("g", 0, offsets).metadata()} if offsets is not None else {}
    path = lake.path(name)
    write_deltalake(
        path,
        pa.Table.from_pylist(list(rows), schema=schema),
        mode="append",
        schema_mode="merge",
        commit_properties=CommitProperties(custom_metadata=metadata),
        **options,
    )
    return DeltaTable(path).version()


def backdate(lake: LakeFiles, name: str, version: int, unix_ms: int) -> None:
    """Changes the timestamp of a commit."""
    log = Path(lake.path(name), "_delta_log", f"{version:020}.json")
    actions = [json.loads(line) for line in log.read_text().splitlines()]
    for action in actions:
        if "commitInfo" in action:
            action["commitInfo"]["timestamp"] = unix_ms
    log.write_text("".join(json.dumps(action) + "\n" for action in actions))
