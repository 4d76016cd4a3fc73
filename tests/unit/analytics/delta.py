"""Small lakes of real Delta tables, written without Spark. Commits record the offsets they have reached."""

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
from deltalake import CommitProperties, DeltaTable, Schema, write_deltalake
from pyspark.sql.types import ArrayType, DataType, StructType

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


def create_undescribed(lake: LakeFiles, names: Iterable[str]) -> None:
    """Creates tables without rows and without comments, as releases before the catalog did."""
    for name in names:
        table = find_table(name)
        assert table
        fields = json.loads(table.schema_json(), object_hook=_without_metadata)
        configuration = {"delta.enableChangeDataFeed": "true"}
        DeltaTable.create(lake.path(name), Schema.from_json(json.dumps(fields)), configuration=configuration)


def _without_metadata(node: dict[str, Any]) -> dict[str, Any]:
    return node | {"metadata": {}} if "metadata" in node else node


def missing_comments(lake: LakeFiles, name: str) -> list[str]:
    """Names what has no comment: the table itself, its columns, and the fields within them."""
    table = lake.snapshot(name)
    fields = json.loads(table.schema().to_json())["fields"]
    return ([] if table.metadata().description else [name]) + list(_undescribed(fields, name))


def _undescribed(fields: Iterable[dict[str, Any]], above: str) -> Iterator[str]:
    for field in fields:
        name = f"{above}.{field['name']}"
        if not field["metadata"].get("comment"):
            yield name
        kind = field["type"]
        while isinstance(kind, dict) and kind["type"] == "array":
            kind = kind["elementType"]
        if isinstance(kind, dict):
            yield from _undescribed(kind["fields"], name)


def nullable(kind: DataType) -> str:
    """Spells a type without nullability, which Delta does not keep."""
    if isinstance(kind, StructType):
        return f"struct<{', '.join(f'{field.name}: {nullable(field.dataType)}' for field in kind.fields)}>"
    if isinstance(kind, ArrayType):
        return f"array<{nullable(kind.elementType)}>"
    return kind.simpleString()


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
