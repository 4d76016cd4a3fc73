"""Gold is brought up to date with silver, whatever comes in which order, and whoever else is doing the same."""

import random
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
from deltalake import DeltaTable
from pyspark.sql import SparkSession

from analytics.care import optimize, vacuum
from analytics.commits import versions
from analytics.cut import TABLES as SILVER
from analytics.cut import present
from analytics.gold.abandoned import ABANDONED
from analytics.gold.carts import CARTS
from analytics.gold.definition import Table
from analytics.gold.orders import ORDERS
from analytics.gold.sales import SALES
from analytics.layers.advancing import advance
from analytics.layers.news import news
from analytics.layers.speed import bring_up_to_date, start_gold
from analytics.layers.writing import own_session, state_of, writing
from analytics.tables import path_of, read
from services.catalog import events as stock
from shared.money import Money
from shared.settings import Settings
from tests.integration.lake.conftest import NewLake
from tests.integration.lake.ingested import Ingested
from tests.roll import NOON
from tests.till import eventually
from tests.unit.lake.stories import MUG, Teller, eventful, listed, silver_of, told
from tests.unit.lake.streaming import Rows, computed, kept, rows_of

TABLES: list[Table] = [CARTS, ORDERS, SALES, ABANDONED]

pytestmark = [pytest.mark.slow, pytest.mark.timeout(600)]


class Lake:
    def __init__(self, spark: SparkSession, settings: Settings) -> None:
        self.spark, self.settings = spark, settings
        self.ingested = Ingested(spark, settings)

    def up_to_date(self, tables: list[Table] = TABLES) -> set[str]:
        return set(bring_up_to_date(self.spark, self.settings, tables=tables).values())

    def gold(self, tables: list[Table] = TABLES) -> dict[str, Rows]:
        return rows_of({table: read(self.spark, self.settings, f"gold.{table.name}") for table in tables})

    def batch(self, tables: list[Table] = TABLES) -> dict[str, Rows]:
        silver = silver_of(self.spark, self.ingested.events)
        return computed(tables, {table: kept(frame.drop("batch")) for table, frame in silver.items()})


@pytest.fixture(scope="module")
def lake(spark: SparkSession, new_lake: NewLake) -> Lake:
    """Most of an eventful day, ingested; the tests go on with it, one after the other."""
    made = Lake(spark, new_lake())
    events = eventful(seed=9)
    chance = random.Random(9)
    late = [event for event in events if chance.random() < 0.15]
    made.ingested.take([event for event in events if event not in late])
    assert made.up_to_date() == {"recomputed"}
    made.ingested.take(late)
    return made


def test_late_events_of_all_services_change_what_they_concern(lake: Lake) -> None:
    assert lake.up_to_date() == {"changed"}
    assert lake.gold() == lake.batch()


def test_where_nothing_is_new_nothing_is_committed(lake: Lake) -> None:
    before = [next(versions(lake.settings, f"gold.{table.name}")) for table in TABLES]
    assert lake.up_to_date() == {"up to date"}
    assert [next(versions(lake.settings, f"gold.{table.name}")) for table in TABLES] == before


def test_the_cut_advances_although_no_row_changes(lake: Lake) -> None:
    lake.ingested.take(told((NOON, "stock:NEW", stock.PriceChanged("NEW", Money(1, "EUR"), Money(2, "EUR")))))
    assert lake.up_to_date() == {"nothing in it changed"}
    states = [state_of(lake.settings, f"gold.{table.name}") for table in TABLES]
    assert {state.cut.batch for state in states if state} == {2}


def test_a_death_between_two_tables_is_made_up_for(lake: Lake) -> None:
    lake.ingested.take(told(listed("POT-2"), Teller("cart-of-death").opens().adds(MUG).checks_out().gets_stock()))
    lake.up_to_date([CARTS, ORDERS])
    lake.ingested.take(told(Teller("cart-after-death").opens().adds(MUG, 3)))
    lake.up_to_date()
    assert lake.gold() == lake.batch()


def test_sums_are_not_added_twice_by_two_who_bring_them_up_to_date(lake: Lake) -> None:
    lake.ingested.take(told(Teller("wanted-twice").opens().adds(MUG).checks_out().gets_stock().is_confirmed()))
    cut = present(lake.settings)
    assert cut
    session = own_session(lake.spark)
    with news(session, lake.settings, cut) as found:
        state = state_of(lake.settings, "gold.sales_per_minute")
        assert state
        slow = writing(session, lake.settings, "gold.sales_per_minute", "gold", SALES, cut)
        concerned = found.concerned(state.cut, SALES.scope)
        difference = SALES.difference(concerned.before, concerned.after)
        assert advance(session, lake.settings, "gold.sales_per_minute", "gold", SALES, found) == "changed"
        slow.add(difference, SALES)
    assert lake.gold([SALES]) == lake.batch([SALES])


def test_a_table_made_with_another_logic_waits_for_its_replay(lake: Lake) -> None:
    lake.ingested.take(told(Teller("after-the-change").opens()))
    assert lake.up_to_date([replace(CARTS, version=2)]) == {"waits for a replay"}


def test_gold_follows_silver_until_it_is_stopped(lake: Lake) -> None:
    def seen(cart_id: str) -> Callable[[], bool]:
        return lambda: (cart_id,) in lake.gold([CARTS])["carts"]

    following = start_gold(lake.spark, lake.settings, every=0.1, tables=[CARTS])
    try:
        lake.ingested.take(told(Teller("while-following").opens()))
        eventually(seen("while-following"), "the cart in gold", seconds=120)
    finally:
        following.stop()
    assert not following.active


@pytest.mark.parametrize("gone", ["files", "log"])
def test_gold_that_was_left_behind_longer_than_history_is_kept_is_computed_anew(
    spark: SparkSession, new_lake: NewLake, gone: str
) -> None:
    """Nobody can be told any more what is new."""
    lake = Lake(spark, new_lake())
    lake.ingested.take([one for n in range(12) for one in told(Teller(f"before-{n}").opens().adds(MUG))])
    lake.up_to_date([CARTS])
    lake.ingested.take(told(Teller("while-nobody-looked").opens().adds(MUG)))
    forget_files(lake) if gone == "files" else forget_log(lake)
    assert lake.up_to_date([CARTS]) == {"recomputed"}
    assert lake.gold([CARTS]) == lake.batch([CARTS])


def forget_files(lake: Lake) -> None:
    """Compacted, and all deleted that no version of today needs."""
    silver = [f"silver.{table}" for table in SILVER]
    optimize(lake.spark, lake.settings, silver)
    lake.spark.conf.set("spark.databricks.delta.retentionDurationCheck.enabled", "false")
    vacuum(lake.spark, lake.settings.model_copy(update={"lake_history_days": 0}), silver)
    lake.spark.conf.unset("spark.databricks.delta.retentionDurationCheck.enabled")


def forget_log(lake: Lake) -> None:
    """A checkpoint, and nothing before it, as Delta leaves it when the time of old commits is over."""
    lake.ingested.take([])
    for table in SILVER:
        DeltaTable(path_of(lake.settings, f"silver.{table}")).create_checkpoint()
        log = Path(path_of(lake.settings, f"silver.{table}"), "_delta_log")
        [checkpoint] = log.glob("*.checkpoint.parquet")
        for commit in log.glob("*.json"):
            if commit.name < checkpoint.name:
                commit.unlink()
