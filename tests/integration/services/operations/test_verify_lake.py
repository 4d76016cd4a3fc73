"""The check of the lake, on tables written from the shop's topics without Spark, from which rows are then removed."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from deltalake import CommitProperties, DeltaTable, write_deltalake

from infra.settings import Settings
from tests.integration.services.operations.conftest import Check
from tests.integration.shared.topics import Record, read_topic

TOPICS = ("cart.events", "order.events", "payment.events", "stock.events")
HEADERS = pa.list_(pa.struct([("key", pa.string()), ("value", pa.binary())]))
PLACE = [("topic", pa.string()), ("partition", pa.int32()), ("offset", pa.int64())]


@pytest.fixture(scope="module")
def lake(shop: Settings, tmp_path_factory: pytest.TempPathFactory) -> str:
    folder = tmp_path_factory.mktemp("lake")
    records = {topic: read_topic(shop, topic) for topic in TOPICS}
    offsets = {topic: {str(p): _end(records[topic], p) for p in range(6)} for topic in TOPICS}
    metadata = json.dumps({"query": "ingest", "generation": "g", "batch": 1, "offsets": offsets})
    everything = [(topic, record) for topic in TOPICS for record in records[topic]]
    bronze = [{**_place(t, r), "headers": [{"key": k, "value": v} for k, v in r.headers]} for t, r in everything]
    _write(folder / "bronze" / "events", bronze, [*PLACE, ("headers", HEADERS)], metadata)
    quarantined = records["cart.events"][0]
    for topic in TOPICS:
        known = {r.header("ce_id"): _event(topic, r) for r in reversed(records[topic]) if r is not quarantined}
        columns = [*PLACE, ("event_id", pa.string()), ("stream_id", pa.string())]
        _write(folder / "silver" / topic.replace(".", "_"), list(known.values()), columns, metadata)
    unread = [_place("cart.events", quarantined) | {"event_id": None}]
    _write(folder / "silver" / "quarantine", unread, [*PLACE, ("event_id", pa.string())], metadata)
    return str(folder)


def _end(records: list[Record], partition: int) -> int:
    return max((record.offset + 1 for record in records if record.partition == partition), default=0)


def _place(topic: str, record: Record) -> dict[str, Any]:
    return {"topic": topic, "partition": record.partition, "offset": record.offset}


def _event(topic: str, record: Record) -> dict[str, Any]:
    return _place(topic, record) | {"event_id": record.header("ce_id"), "stream_id": record.header("ce_subject")}


def _write(path: Path, rows: list[dict[str, Any]], columns: list[Any], metadata: str) -> None:
    table = pa.Table.from_pylist(rows, schema=pa.schema(columns))
    write_deltalake(str(path), table, commit_properties=CommitProperties(custom_metadata={"userMetadata": metadata}))


@pytest.fixture
def restored(lake: str) -> Iterator[str]:
    """The lake; rows that a test removes come back afterwards."""
    tables = [DeltaTable(str(path.parent)) for path in Path(lake).glob("*/*/_delta_log")]
    versions = [table.version() for table in tables]
    yield lake
    for table, version in zip(tables, versions, strict=True):
        table.update_incremental()
        if table.version() != version:
            table.restore(version)


def test_a_complete_lake_has_no_violation(check: Check, lake: str) -> None:
    found = check("lake", lake=lake)
    assert found.violations == []
    assert found.looked_at > 200


def test_a_message_that_is_missing_in_bronze_is_found(check: Check, restored: str) -> None:
    DeltaTable(f"{restored}/bronze/events").delete("topic = 'order.events' AND partition = 2 AND offset = 3")
    found = check("lake", lake=restored)
    assert ("order.events/2/3", "Bronze lacks 1 messages of order.events/2.") in [
        (violation.position, violation.what) for violation in found.violations
    ]


def test_an_event_missing_in_silver_and_one_that_is_there_twice_are_found(check: Check, restored: str) -> None:
    silver = DeltaTable(f"{restored}/silver/stock_events")
    rows = silver.to_pyarrow_table().slice(0, 2)
    lost, twice = rows["event_id"].to_pylist()
    silver.delete(f"event_id = '{lost}'")
    write_deltalake(f"{restored}/silver/stock_events", rows.slice(1, 1), mode="append")
    whats = [violation.what for violation in check("lake", lake=restored).violations]
    assert whats == [
        f"Event {lost} is in bronze, and neither in silver.stock_events nor in quarantine.",
        f"Event {twice} is in silver.stock_events 2 times.",
    ]


def test_a_shop_without_a_lake_gives_a_note_and_no_violation(check: Check, tmp_path: Path) -> None:
    found = check("lake", lake=str(tmp_path / "nowhere"))
    assert found.total == 0
    assert found.notes == ["There is no lake yet. Fill it with: till lake run"]
