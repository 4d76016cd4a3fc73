"""Refreshing gold gives what a full recomputation gives, in whatever order events arrive."""

import random
import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as sf

from analytics import incremental
from analytics.incremental.definition import GoldTable, Tally
from analytics.incremental.scope import Affected
from analytics.models import GOLD
from analytics.models.marts.carts import carts
from analytics.models.marts.orders import orders
from analytics.models.scopes.shopping import SHOPPING
from tests.unit.analytics.incremental.refreshed import Step, step
from tests.unit.analytics.recomputed import kept, rows_by_key, small
from tests.unit.analytics.stories import eventful, silver_of

PAGE = Path(incremental.__path__[0], "README.md")
SHOPPING_TABLES = [table for table in GOLD if table.scope is SHOPPING]


@pytest.fixture(scope="module")
def shuffled(spark: SparkSession) -> Step:
    """An eventful day. Half of its events arrive after the other half, without regard to time or order."""
    events, chance = eventful(seed=4), random.Random(4)
    silver = silver_of(small(spark), events, [chance.randrange(2) for _ in events])
    older = {name: kept(frame.where(sf.col("batch") == 0).drop("batch")) for name, frame in silver.items()}
    new = {name: kept(frame.where(sf.col("batch") == 1).drop("batch")) for name, frame in silver.items()}
    return step(SHOPPING, (carts, orders), older, new)


@pytest.mark.parametrize("table", SHOPPING_TABLES, ids=lambda table: table.name)
def test_refreshed_gold_equals_recomputed_gold(shuffled: Step, table: GoldTable) -> None:
    shuffled.assert_equals_full_recomputation(table)


def test_the_example_in_the_readme_is_refreshed_like_any_other_table(shuffled: Step) -> None:
    table = declared_in_the_readme()
    assert (table.name, table.key) == ("refunds_per_day", ("day", "currency"))
    assert table.description.startswith("One row per day")
    shuffled.assert_equals_full_recomputation(table)


def test_forgetting_an_affected_cart_makes_a_difference(shuffled: Step) -> None:
    """A mistake is planted: carts that had something put in are forgotten."""

    def forgetful(found: Affected) -> DataFrame:
        return found.new["cart_moves"].where("kind <> 'ItemAdded'").select("cart_id").distinct()

    refreshed = shuffled.refreshed(replace(carts, affected=forgetful))
    assert rows_by_key(carts, refreshed) != rows_by_key(carts, carts.compute(shuffled.after))


def declared_in_the_readme() -> Tally:
    [code] = re.findall(r"```python\n(.*?)```", PAGE.read_text(), re.DOTALL)
    assert len(code.splitlines()) <= 20, "the page promises twenty lines"
    names: dict[str, Any] = {}
    exec(code, names)
    [table] = [it for it in names.values() if isinstance(it, Tally)]
    return table
