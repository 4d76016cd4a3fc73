"""What Lambda serves, asked without Spark: batch as of its cut, and speed laid over it."""

import json
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from deltalake import CommitProperties, DeltaTable, write_deltalake

from analytics.reading.asking import ask
from analytics.served import Served
from shared.settings import Settings
from tests.unit.lake.delta import backdate

SUMS = Served(key=("hour",), figures=("opened", "sold"), derived=(("rate", "round({sold} / nullif({opened}, 0), 4)"),))
UNITS = Served(unit=("cart_id",))
TYPES = {"hour": pa.int32(), "opened": pa.int64(), "sold": pa.int64(), "rate": pa.float64(), "_empty": pa.bool_()}
TYPES |= {"cart_id": pa.string(), "visit": pa.int32(), "value": pa.int64()}


@pytest.fixture
def lake(tmp_path: Path) -> Settings:
    return Settings.load(home=tmp_path)


def put(lake: Settings, name: str, columns: str, rows: list[tuple[Any, ...]], seen: int, **said: Any) -> int:
    """All of a table anew, as of that offset. Its version."""
    schema = pa.schema([(column, TYPES[column]) for column in columns.split()])
    table = pa.Table.from_pylist([dict(zip(schema.names, row, strict=True)) for row in rows], schema=schema)
    metadata = json.dumps({"silver": {}, "offsets": {"cart.events": {"0": seen}}, **said})
    path = str(Path(lake.lake, *name.split(".")))
    properties = CommitProperties(custom_metadata={"userMetadata": metadata})
    write_deltalake(path, table, mode="overwrite", commit_properties=properties)
    return DeltaTable(path).version()


def rows(lake: Settings, sql: str, **more: Any) -> list[tuple[Any, ...]]:
    return sorted(ask(lake, sql, **more).rows)


def test_sums_are_those_of_batch_and_what_has_been_added_since(lake: Settings) -> None:
    base = put(lake, "batch.funnel", "hour opened sold rate", [(1, 4, 1, 0.25), (2, 5, 0, 0.0)], 9)
    assert rows(lake, "SELECT * FROM serving.funnel") == [(1, 4, 1, 0.25), (2, 5, 0, 0.0)]
    put(lake, "speed.funnel", "hour opened sold", [(2, -5, 0), (1, 0, 2), (3, 1, 0)], 12, base=base, served=SUMS.said())
    assert rows(lake, "SELECT * FROM serving.funnel") == [(1, 4, 3, 0.75), (3, 1, 0, 0.0)]


def test_rows_of_what_was_touched_since_stand_for_those_of_batch(lake: Settings) -> None:
    base = put(lake, "batch.carts", "cart_id visit value", [("a", 1, 5), ("a", 2, 6), ("b", 1, 7), ("c", 1, 8)], 9)
    fresh = [("a", 1, 50, False), ("c", None, None, True), ("d", 1, 90, False)]
    put(lake, "speed.carts", "cart_id visit value _empty", fresh, 12, base=base, served=UNITS.said())
    assert rows(lake, "SELECT * FROM serving.carts") == [("a", 1, 50), ("b", 1, 7), ("d", 1, 90)]
    assert rows(lake, "SELECT count(*) FROM batch.carts JOIN serving.carts USING (cart_id)") == [(3,)]


def test_until_speed_belongs_to_a_new_batch_the_old_one_is_served(lake: Settings) -> None:
    """Else what came between the two batches would be counted twice."""
    base = put(lake, "batch.funnel", "hour opened sold rate", [(1, 4, 1, 0.25)], 9)
    put(lake, "speed.funnel", "hour opened sold", [(1, 4, 3)], 12, base=base, served=SUMS.said())
    put(lake, "batch.funnel", "hour opened sold rate", [(1, 8, 4, 0.5)], 12)
    assert rows(lake, "SELECT opened, sold FROM serving.funnel") == [(8, 4)]


def test_a_compaction_of_batch_is_the_same_batch(lake: Settings) -> None:
    base = put(lake, "batch.funnel", "hour opened sold rate", [(1, 4, 1, 0.25)], 9)
    put(lake, "speed.funnel", "hour opened sold", [(1, 0, 1)], 12, base=base, served=SUMS.said())
    table = DeltaTable(str(Path(lake.lake, "batch/funnel")))
    more = pa.table({"hour": pa.array([], pa.int32())})
    write_deltalake(table, more, mode="append", schema_mode="merge")
    table = DeltaTable(str(Path(lake.lake, "batch/funnel")))
    table.optimize.compact()
    assert DeltaTable(str(Path(lake.lake, "batch/funnel"))).version() > base
    assert ask(lake, "SELECT * FROM serving.funnel").versions == {"serving.funnel": 0}
    assert rows(lake, "SELECT opened, sold FROM serving.funnel") == [(4, 2)]


def test_it_can_be_asked_as_it_was(lake: Settings) -> None:
    base = put(lake, "batch.funnel", "hour opened sold rate", [(1, 4, 1, 0.25)], 9)
    put(lake, "speed.funnel", "hour opened sold", [(1, 0, 1)], 12, base=base, served=SUMS.said())
    put(lake, "speed.funnel", "hour opened sold", [(1, 0, 3)], 15, base=base, served=SUMS.said())
    backdate(lake, "speed.funnel", 0, 1_000_000)
    backdate(lake, "speed.funnel", 1, 3_000_000)
    then = datetime.fromtimestamp(2000, UTC)
    assert rows(lake, "SELECT sold FROM serving.funnel", at=then) == [(2,)]
    assert rows(lake, "SELECT sold FROM serving.funnel") == [(4,)]
