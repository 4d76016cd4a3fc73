"""Streamed, recomputed, served and replayed gold are the same rows, and a difference is found and repaired.

`test_lambda_and_kappa_in_short.py` is the short version of this, for every run of the tests.
"""

from collections.abc import Sequence
from dataclasses import replace
from datetime import timedelta

import pytest
from delta.tables import DeltaTable
from pyspark.sql import DataFrame
from pyspark.sql import functions as sf
from uuid_utils import uuid7

from analytics.incremental.definition import GoldTable
from analytics.ingest.stream import ingest_available
from analytics.lake import Lake
from analytics.log.commits import SpeedCommit
from analytics.log.progress import last_computed
from analytics.models import GOLD
from analytics.models.marts.carts import carts
from analytics.models.marts.orders import orders
from analytics.models.marts.sales import sales_per_minute
from analytics.query.ask import ask
from analytics.serving.batch_layer import recompute_batch_layer
from analytics.serving.replay import replay, undo
from analytics.serving.serving_view import read_serving
from analytics.serving.streaming_layer import refresh_gold
from analytics.verify import Verification, verify
from shared.errors import OperatorError
from tests.integration.analytics.conftest import NewLake
from tests.integration.analytics.rows import plain
from tests.roll import NOON, Press, ShopEvent, numbered, shopping
from tests.unit.analytics.fraud.payments import failed

TABLES: Sequence[GoldTable] = GOLD

pytestmark = [pytest.mark.slow, pytest.mark.timeout(600)]


@pytest.fixture(scope="module")
def lake(new_lake: NewLake, press: Press) -> Lake:
    """A lake with a batch layer of the morning, then late, repeated and new events, all of which gold has seen."""
    made = new_lake()
    events = [*shopping(6, start=NOON, seed=3), *suspicious("first")]
    late = [event for event in events if event.version == 2]
    press.send([event for event in events if event not in late])
    ingest_available(made)
    refresh_gold(made, tables=TABLES)
    recompute_batch_layer(made, tables=TABLES)
    press.send([*late, *events[:20], *shopping(2, start=NOON + timedelta(minutes=3), seed=5)])
    press.send(suspicious("second"))
    ingest_available(made)
    refresh_gold(made, tables=TABLES)
    return made


def suspicious(who: str) -> list[ShopEvent]:
    """Payments of one customer that are declined often enough for an alert."""
    name = f"{who}-{uuid7()}"
    return numbered(it for n in range(5) for it in failed(f"{name}-{n}", name, n))


def unequal(found: Verification) -> list[str]:
    return [verdict.name for verdict in found.verdicts if not verdict.equal]


def test_streamed_and_served_tables_equal_a_batch(lake: Lake) -> None:
    found = verify(lake, tables=TABLES)
    assert unequal(found) == []
    names = {verdict.name for verdict in found.verdicts}
    assert names == {f"{layer}.{table.name}" for layer in ("gold", "serving") for table in TABLES}
    assert all(verdict.difference.rows for verdict in found.verdicts), "without rows, nothing is proved"


@pytest.mark.parametrize("table", TABLES, ids=lambda table: table.name)
def test_analysts_are_served_the_same_rows_without_spark(lake: Lake, table: GoldTable) -> None:
    served = read_serving(lake, table.name)
    assert served is not None
    named = ", ".join(f'"{column}"' for column in served.columns)
    answer = ask(lake, f"SELECT {named} FROM serving.{table.name}")
    assert plain(answer.rows) == plain(served.collect())


def test_the_speed_layer_has_only_what_changed_since_the_batch(lake: Lake) -> None:
    speed, gold = lake.read("speed.carts").count(), lake.read("gold.carts").count()
    assert 0 < speed <= gold
    assert lake.read("batch.carts").count() < gold


def test_the_old_batch_is_served_until_the_speed_layer_has_caught_up_with_the_new_one(lake: Lake) -> None:
    before = last_computed(lake, "speed.carts")
    recompute_batch_layer(lake, tables=[carts])
    served = read_serving(lake, "carts")
    assert isinstance(before, SpeedCommit)
    assert served is not None
    assert served.count() == lake.read("gold.carts").count()
    refresh_gold(lake, tables=[carts])
    after = last_computed(lake, "speed.carts")
    assert isinstance(after, SpeedCommit)
    assert after.base > before.base
    assert lake.read("speed.carts").count() == 0


def test_a_wrong_row_is_found_and_a_replay_repairs_it(lake: Lake) -> None:
    order = lake.read("gold.orders").where("status = 'confirmed'").first()
    assert order
    target = DeltaTable.forPath(lake.spark, lake.path("gold.orders"))
    target.update(sf.col("order_id") == order["order_id"], {"total": sf.col("total") + 1})

    found = verify(lake, tables=[orders, sales_per_minute])
    assert unequal(found) == ["gold.orders"]
    [verdict] = [verdict for verdict in found.verdicts if not verdict.equal]
    shown = {row["side"]: (row["order_id"], row["total"]) for row in verdict.difference.shown}
    assert shown == {"this": (order["order_id"], order["total"] + 1), "other": (order["order_id"], order["total"])}

    repaired = replay(lake, "orders", tables=TABLES)
    assert repaired.swapped
    assert repaired.difference
    assert (repaired.difference.added, repaired.difference.gone, repaired.difference.changed) == (0, 0, 1)
    assert unequal(verify(lake, tables=[orders])) == []


def doubled(order_processes: DataFrame) -> DataFrame:
    return sales_per_minute.model(order_processes).withColumn("revenue", sf.col("revenue") * 2)


OTHER_LOGIC: list[GoldTable] = [replace(sales_per_minute, model=doubled, version=2)]


def test_another_logic_is_replayed_from_kafka_and_can_be_undone(lake: Lake) -> None:
    revenue = _revenue(lake)
    assert refresh_gold(lake, tables=OTHER_LOGIC) == {"sales_per_minute": "waits for a replay"}

    found = replay(lake, "sales_per_minute", source="kafka", tables=OTHER_LOGIC)
    assert found.difference
    assert found.difference.changed > 0
    assert _revenue(lake) == 2 * revenue
    assert refresh_gold(lake, tables=[sales_per_minute]) == {"sales_per_minute": "waits for a replay"}

    undo(lake, "sales_per_minute", tables=OTHER_LOGIC)
    assert _revenue(lake) == revenue
    with pytest.raises(OperatorError, match="no replay that could be undone"):
        undo(lake, "sales_per_minute", tables=OTHER_LOGIC)


def test_a_replay_that_dies_changes_nothing_and_starts_again(lake: Lake) -> None:
    before = last_computed(lake, "gold.carts")

    def dies(line: str) -> None:
        if "added" in line:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        replay(lake, "carts", progress=dies, tables=TABLES)
    assert last_computed(lake, "gold.carts") == before
    assert replay(lake, "carts", tables=TABLES).swapped


def _revenue(lake: Lake) -> int:
    row = lake.read("gold.sales_per_minute").agg(sf.sum("revenue")).first()
    assert row
    total: int = row[0]
    return total
