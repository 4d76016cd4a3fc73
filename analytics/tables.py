"""Creates the tables of the ingest, and keeps the columns and comments of all tables current. Needs no Spark."""

import json
import logging
from collections.abc import Iterable, Iterator
from typing import Any

from deltalake import DeltaTable, Schema
from deltalake.exceptions import DeltaError, TableNotFoundError

from analytics.catalog import Table, find_table
from analytics.catalog.events import event_tables
from analytics.lake import LakeFiles
from analytics.settings import LakeSettings
from shared.schemas.contract.event_schemas import Schemas

log = logging.getLogger(__name__)


def create_missing(lake: LakeFiles, schemas: Schemas | None = None) -> None:
    """Creates the tables of the ingest that do not exist, and adds columns for new event types and fields.

    Uses delta-rs, which takes milliseconds where Spark takes seconds.
    """
    for table in event_tables(schemas):
        try:
            snapshot = lake.snapshot(table.name)
        except TableNotFoundError:
            DeltaTable.create(
                lake.path(table.name),
                Schema.from_json(table.schema_json()),
                mode="ignore",
                description=table.description,
                configuration=_properties(lake.settings, table),
            )
        else:
            _describe(snapshot, table)


def update_comments(lake: LakeFiles, names: Iterable[str] | None = None) -> None:
    """Stores the catalog's descriptions in these tables, or all, so that DESCRIBE shows them.

    A table whose comments are current is left alone. Otherwise one commit adds what is missing, and others replace what
    has changed; they carry no metadata of ours, so readers of the log pass over them as over a compaction. A writer
    that commits at the same moment wins: the comments wait for the next run.
    """
    for name in lake.tables() if names is None else names:
        if table := find_table(name):
            try:
                _describe(lake.snapshot(name), table, new_columns=False)
            except DeltaError as error:
                log.info("comments of %s wait for the next run: %s", name, error)


def _describe(snapshot: DeltaTable, table: Table, new_columns: bool = True) -> None:
    there = json.loads(snapshot.schema().to_json())["fields"]
    wanted = described_fields(there, table) if not new_columns else [column.field() for column in table.columns]
    # delta-rs adds columns and missing comments at any depth, but refuses a comment that differs from the stored one.
    added = _with_comments(wanted, there)
    if set(_comments(added)) - set(_comments(there)):
        snapshot.alter.add_columns(Schema.from_json(json.dumps({"type": "struct", "fields": added})).fields)
    # It can replace the comment of a column, but not that of a field within one: that waits for an overwrite.
    for old, new in zip(added, wanted, strict=True):
        if old["metadata"] != new["metadata"]:
            snapshot.alter.set_column_metadata(new["name"], {"comment": new["metadata"]["comment"]})
    if snapshot.metadata().description != table.description:
        snapshot.alter.set_table_description(table.description)


def described_fields(fields: list[dict[str, Any]], table: Table) -> list[dict[str, Any]]:
    """Returns the fields of a schema as they are, with the comments that the catalog has for them."""
    return _with_comments(fields, [column.field() for column in table.columns])


def _with_comments(fields: list[dict[str, Any]], described: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Returns the fields as they are, at any depth, with the comments of the described fields of the same name."""
    by_name = {field["name"]: field for field in described}
    return [_with_comment(field, by_name[field["name"]]) if field["name"] in by_name else field for field in fields]


def _with_comment(field: dict[str, Any], described: dict[str, Any]) -> dict[str, Any]:
    metadata = field["metadata"] | described["metadata"]
    return field | {"type": _type_with_comments(field["type"], described["type"]), "metadata": metadata}


def _type_with_comments(kind: Any, described: Any) -> Any:
    match kind, described:
        case {"type": "array", "elementType": element}, {"type": "array", "elementType": other}:
            return kind | {"elementType": _type_with_comments(element, other)}
        case {"type": "struct", "fields": fields}, {"type": "struct", "fields": others}:
            return kind | {"fields": _with_comments(fields, others)}
        case _:
            return kind


def _comments(fields: Iterable[dict[str, Any]], above: str = "") -> Iterator[tuple[str, str]]:
    """Yields the full name and the comment of every column, and of every field within one."""
    for field in fields:
        name = f"{above}.{field['name']}"
        yield name, field["metadata"].get("comment", "")
        kind = field["type"]
        while isinstance(kind, dict) and kind["type"] == "array":
            kind = kind["elementType"]
        if isinstance(kind, dict) and kind["type"] == "struct":
            yield from _comments(kind["fields"], name)


def _properties(settings: LakeSettings, table: Table) -> dict[str, str | None]:
    kept = f"interval {settings.lake_history_days * 24:.0f} hours"
    return {
        "delta.checkpointInterval": "100",  # every tenth commit is too often for a stream of small batches
        "delta.dataSkippingStatsColumns": ",".join(table.stats),
        "delta.enableChangeDataFeed": "true",  # costs an append nothing
        "delta.logRetentionDuration": kept,
        "delta.deletedFileRetentionDuration": kept,
    }
