"""The serving view without Spark: the batch table at its cut, combined with the speed table."""

from datetime import UTC, datetime
from typing import Any

import pyarrow as pa
from deltalake import CommitProperties, DeltaTable, write_deltalake

from analytics.lake import LakeFiles
from analytics.log.commits import BatchCommit, SpeedCommit
from analytics.log.cut import Cut
from analytics.query.ask import ask
from analytics.serving.serving_view import ServingView
from tests.unit.analytics.delta import backdate

SUMS = ServingView(
    key=("hour",), figures=("opened", "sold"), derived=(("rate", "round({sold} / nullif({opened}, 0), 4)"),)
)
UNITS = ServingView(unit=("cart_id",))
TYPES = {"hour": pa.int32(), "opened": pa.int64(), "sold": pa.int64(), "rate": pa.float64(), "_empty": pa.bool_()}
TYPES |= {"cart_id": pa.string(), "visit": pa.int32(), "value": pa.int64()}


def put(lake: LakeFiles, name: str, columns: str, rows: list[tuple[Any, ...]], seen: int, **speed: Any) -> int:
    """Overwrites a table as of an offset and returns its version."""
    schema = pa.schema([(column, TYPES[column]) for column in columns.split()])
    table = pa.Table.from_pylist([dict(zip(schema.names, row, strict=True)) for row in rows], schema=schema)
    cut = Cut({}, "g", 0, {"cart.events": {"0": seen}})
    commit = SpeedCommit(cut, 1, **speed) if speed else BatchCommit(cut, 1)
    path = lake.path(name)
    properties = CommitProperties(custom_metadata={"userMetadata": commit.metadata()})
    write_deltalake(path, table, mode="overwrite", commit_properties=properties)
    return DeltaTable(path).version()


def rows(lake: LakeFiles, sql: str, **more: Any) -> list[tuple[Any, ...]]:
    return sorted(ask(lake, sql, **more).rows)


def test_sums_are_added_to_those_of_the_batch(lake: LakeFiles) -> None:
    base = put(lake, "batch.funnel", "hour opened sold rate", [(1, 4, 1, 0.25), (2, 5, 0, 0.0)], 9)
    assert rows(lake, "SELECT * FROM serving.funnel") == [(1, 4, 1, 0.25), (2, 5, 0, 0.0)]
    put(
        lake,
        "speed.funnel",
        "hour opened sold",
        [(2, -5, 0), (1, 0, 2), (3, 1, 0)],
        12,
        base=base,
        served=SUMS.metadata(),
    )
    assert rows(lake, "SELECT * FROM serving.funnel") == [(1, 4, 3, 0.75), (3, 1, 0, 0.0)]


def test_rows_of_changed_units_replace_those_of_the_batch(lake: LakeFiles) -> None:
    base = put(lake, "batch.carts", "cart_id visit value", [("a", 1, 5), ("a", 2, 6), ("b", 1, 7), ("c", 1, 8)], 9)
    fresh = [("a", 1, 50, False), ("c", None, None, True), ("d", 1, 90, False)]
    put(lake, "speed.carts", "cart_id visit value _empty", fresh, 12, base=base, served=UNITS.metadata())
    assert rows(lake, "SELECT * FROM serving.carts") == [("a", 1, 50), ("b", 1, 7), ("d", 1, 90)]
    assert rows(lake, "SELECT count(*) FROM batch.carts JOIN serving.carts USING (cart_id)") == [(3,)]


def test_the_old_batch_is_served_until_speed_belongs_to_the_new_one(lake: LakeFiles) -> None:
    """Otherwise what came between the two batches would be counted twice."""
    base = put(lake, "batch.funnel", "hour opened sold rate", [(1, 4, 1, 0.25)], 9)
    put(lake, "speed.funnel", "hour opened sold", [(1, 4, 3)], 12, base=base, served=SUMS.metadata())
    put(lake, "batch.funnel", "hour opened sold rate", [(1, 8, 4, 0.5)], 12)
    assert rows(lake, "SELECT opened, sold FROM serving.funnel") == [(8, 4)]


def test_a_compacted_batch_is_still_the_same_batch(lake: LakeFiles) -> None:
    base = put(lake, "batch.funnel", "hour opened sold rate", [(1, 4, 1, 0.25)], 9)
    put(lake, "speed.funnel", "hour opened sold", [(1, 0, 1)], 12, base=base, served=SUMS.metadata())
    table = DeltaTable(lake.path("batch.funnel"))
    more = pa.table({"hour": pa.array([], pa.int32())})
    write_deltalake(table, more, mode="append", schema_mode="merge")
    table = DeltaTable(lake.path("batch.funnel"))
    table.optimize.compact()
    assert DeltaTable(lake.path("batch.funnel")).version() > base
    assert ask(lake, "SELECT * FROM serving.funnel").versions == {"serving.funnel": 0}
    assert rows(lake, "SELECT opened, sold FROM serving.funnel") == [(4, 2)]


def test_the_serving_view_can_be_read_as_of_an_earlier_moment(lake: LakeFiles) -> None:
    base = put(lake, "batch.funnel", "hour opened sold rate", [(1, 4, 1, 0.25)], 9)
    put(lake, "speed.funnel", "hour opened sold", [(1, 0, 1)], 12, base=base, served=SUMS.metadata())
    put(lake, "speed.funnel", "hour opened sold", [(1, 0, 3)], 15, base=base, served=SUMS.metadata())
    backdate(lake, "speed.funnel", 0, 1_000_000)
    backdate(lake, "speed.funnel", 1, 3_000_000)
    then = datetime.fromtimestamp(2000, UTC)
    assert rows(lake, "SELECT sold FROM serving.funnel", at=then) == [(2,)]
    assert rows(lake, "SELECT sold FROM serving.funnel") == [(4,)]
