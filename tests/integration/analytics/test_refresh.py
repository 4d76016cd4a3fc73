"""Gold is refreshed from silver in real Delta tables, with late events, after crashes, and with a second writer.

`test_lambda_and_kappa_in_short.py` refreshes two of the tables in every run of the tests.
"""

import random
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
from deltalake import DeltaTable
from pyspark.testing import assertDataFrameEqual

from analytics.catalog import SILVER_TABLES
from analytics.incremental.change_feed import open_change_feed
from analytics.incremental.definition import GoldTable
from analytics.incremental.merge import begin_commit, own_session
from analytics.incremental.refresh import refresh
from analytics.lake import Lake
from analytics.log.commits import GoldCommit
from analytics.log.progress import current_cut, last_computed
from analytics.maintenance import optimize, vacuum
from analytics.models.marts.abandoned_carts import abandoned_carts
from analytics.models.marts.carts import carts
from analytics.models.marts.orders import orders
from analytics.models.marts.sales import sales_per_minute
from analytics.serving.streaming_layer import refresh_gold, start_refresh_loop
from services.catalog import events as stock
from services.common.money import Money
from tests.integration.analytics.conftest import NewLake
from tests.integration.analytics.ingested import Ingested
from tests.roll import NOON
from tests.till import eventually
from tests.unit.analytics.recomputed import kept, recomputed
from tests.unit.analytics.stories import MUG, Teller, eventful, listed, silver_of, told

TABLES: list[GoldTable] = [carts, orders, sales_per_minute, abandoned_carts]

pytestmark = [pytest.mark.slow, pytest.mark.timeout(600)]


class GrowingLake(Lake):
    """A lake to which events are added batch by batch, without Kafka."""

    def __init__(self, lake: Lake) -> None:
        super().__init__(lake.spark, lake.settings)
        self.ingested = Ingested(lake)

    def refresh(self, tables: list[GoldTable] = TABLES) -> set[str]:
        return set(refresh_gold(self, tables=tables).values())

    def assert_gold_equals_full_recomputation(self, tables: list[GoldTable] = TABLES) -> None:
        silver = silver_of(self.spark, self.ingested.events)
        expected = recomputed(tables, {table: kept(frame.drop("batch")) for table, frame in silver.items()})
        for table in tables:
            stored = self.read(f"gold.{table.name}")
            assertDataFrameEqual(stored.select(*expected[table.name].columns), expected[table.name])


@pytest.fixture(scope="module")
def lake(new_lake: NewLake) -> GrowingLake:
    """A lake with most of an eventful day. The tests go on with it, one after the other."""
    made = GrowingLake(new_lake())
    events = eventful(seed=9)
    chance = random.Random(9)
    late = [event for event in events if chance.random() < 0.15]
    made.ingested.take([event for event in events if event not in late])
    assert made.refresh() == {"recomputed"}
    made.ingested.take(late)
    return made


def test_late_events_of_all_services_change_what_they_affect(lake: GrowingLake) -> None:
    assert lake.refresh() == {"changed"}
    lake.assert_gold_equals_full_recomputation()


def test_without_new_events_nothing_is_committed(lake: GrowingLake) -> None:
    before = [next(lake.log(f"gold.{table.name}").versions()) for table in TABLES]
    assert lake.refresh() == {"up to date"}
    assert [next(lake.log(f"gold.{table.name}").versions()) for table in TABLES] == before


def test_the_cut_advances_even_if_no_row_changes(lake: GrowingLake) -> None:
    lake.ingested.take(told((NOON, "stock:NEW", stock.PriceChanged("NEW", Money(1, "EUR"), Money(2, "EUR")))))
    assert lake.refresh() == {"nothing in it changed"}
    commits = [last_computed(lake, f"gold.{table.name}") for table in TABLES]
    assert {commit.cut.batch for commit in commits if commit} == {2}


def test_tables_that_a_crash_left_behind_catch_up(lake: GrowingLake) -> None:
    lake.ingested.take(told(listed("POT-2"), Teller("before-the-crash").opens().adds(MUG).checks_out().gets_stock()))
    lake.refresh([carts, orders])
    lake.ingested.take(told(Teller("after-the-crash").opens().adds(MUG, 3)))
    lake.refresh()
    lake.assert_gold_equals_full_recomputation()


def test_two_writers_at_once_do_not_add_the_same_sums_twice(lake: GrowingLake) -> None:
    lake.ingested.take(told(Teller("wanted-twice").opens().adds(MUG).checks_out().gets_stock().is_confirmed()))
    cut = current_cut(lake)
    assert cut
    other = lake.in_session(own_session(lake.spark))
    with open_change_feed(other, cut) as feed:
        last = last_computed(lake, "gold.sales_per_minute")
        assert last
        slow = begin_commit(other, "gold.sales_per_minute", GoldCommit(cut, sales_per_minute.version))
        found = feed.affected(last.cut, sales_per_minute.scope)
        difference = sales_per_minute.difference(found.before, found.after)
        assert refresh(other, "gold.sales_per_minute", GoldCommit, sales_per_minute, feed) == "changed"
        slow.add_difference(difference, sales_per_minute)
    lake.assert_gold_equals_full_recomputation([sales_per_minute])


def test_a_table_made_with_another_logic_waits_for_its_replay(lake: GrowingLake) -> None:
    lake.ingested.take(told(Teller("after-the-change").opens()))
    assert lake.refresh([replace(carts, version=2)]) == {"waits for a replay"}


def test_the_refresh_loop_follows_silver_until_it_is_stopped(lake: GrowingLake) -> None:
    def seen(cart_id: str) -> Callable[[], bool]:
        return lambda: not lake.read("gold.carts").where(f"cart_id = '{cart_id}'").isEmpty()

    loop = start_refresh_loop(lake, every=0.1, tables=[carts])
    try:
        lake.ingested.take(told(Teller("while-following").opens()))
        eventually(seen("while-following"), "the cart in gold", seconds=120)
    finally:
        loop.stop()
    assert not loop.active


@pytest.mark.parametrize("gone", ["files", "log"])
def test_gold_is_recomputed_once_silver_no_longer_has_the_changes(new_lake: NewLake, gone: str) -> None:
    lake = GrowingLake(new_lake())
    lake.ingested.take([one for n in range(12) for one in told(Teller(f"before-{n}").opens().adds(MUG))])
    lake.refresh([carts])
    lake.ingested.take(told(Teller("while-gold-was-left-behind").opens().adds(MUG)))
    delete_files(lake) if gone == "files" else delete_log(lake)
    assert lake.refresh([carts]) == {"recomputed"}
    lake.assert_gold_equals_full_recomputation([carts])


def delete_files(lake: GrowingLake) -> None:
    """Compacts silver, and deletes all files that its newest version does not need."""
    silver = [f"silver.{table}" for table in SILVER_TABLES]
    optimize(lake, silver)
    lake.spark.conf.set("spark.databricks.delta.retentionDurationCheck.enabled", "false")
    vacuum(Lake(lake.spark, lake.settings.model_copy(update={"lake_history_days": 0})), silver)
    lake.spark.conf.unset("spark.databricks.delta.retentionDurationCheck.enabled")


def delete_log(lake: GrowingLake) -> None:
    """Leaves a checkpoint and deletes all commits before it, as Delta does when their retention is over."""
    lake.ingested.take([])
    for table in SILVER_TABLES:
        DeltaTable(lake.path(f"silver.{table}")).create_checkpoint()
        log = Path(lake.path(f"silver.{table}"), "_delta_log")
        [checkpoint] = log.glob("*.checkpoint.parquet")
        for commit in log.glob("*.json"):
            if commit.name < checkpoint.name:
                commit.unlink()
