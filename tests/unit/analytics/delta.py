"""Small lakes of real Delta tables, written without Spark: each commit says which offsets it reached, as ours do."""

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
from deltalake import CommitProperties, DeltaTable, write_deltalake

from shared.settings import Settings

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


def commit(
    settings: Settings,
    name: str,
    rows: Sequence[Mapping[str, Any]],
    schema: pa.Schema = EVENTS,
    offsets: Mapping[str, Mapping[str, int]] | None = None,
    **options: Any,
) -> int:
    """A version more. Its number."""
    said = {"userMetadata": json.dumps({"query": "ingest", "offsets": offsets})} if offsets is not None else {}
    path = str(Path(settings.lake, *name.split(".")))
    write_deltalake(
        path,
        pa.Table.from_pylist(list(rows), schema=schema),
        mode="append",
        schema_mode="merge",
        commit_properties=CommitProperties(custom_metadata=said),
        **options,
    )
    return DeltaTable(path).version()


def backdate(settings: Settings, name: str, version: int, unix_ms: int) -> None:
    """As if it had been committed then."""
    log = Path(settings.lake, *name.split("."), "_delta_log", f"{version:020}.json")
    actions = [json.loads(line) for line in log.read_text().splitlines()]
    for action in actions:
        if "commitInfo" in action:
            action["commitInfo"]["timestamp"] = unix_ms
    log.write_text("".join(json.dumps(action) + "\n" for action in actions))
