"""Streamed, recomputed, served and replayed gold are the same rows: a table of rows and one of sums, on a small story.

`test_lambda_and_kappa.py` is the long version: all tables, repeated events, crashes and repairs.
"""

from datetime import datetime, timedelta

import pytest
from pyspark.testing import assertDataFrameEqual
from uuid_utils import uuid7

from analytics.incremental.definition import GoldTable
from analytics.ingest.stream import ingest_available
from analytics.lake import Lake
from analytics.models.marts.carts import carts
from analytics.models.marts.sales import sales_per_minute
from analytics.query.ask import ask
from analytics.serving.batch_layer import recompute_batch_layer
from analytics.serving.replay import replay
from analytics.serving.serving_view import read_serving
from analytics.serving.streaming_layer import refresh_gold
from analytics.verify import verify
from tests.integration.analytics.conftest import NewLake
from tests.integration.analytics.rows import plain
from tests.roll import NOON, Press
from tests.unit.analytics.delta import missing_comments
from tests.unit.analytics.stories import MUG, Teller, told

TABLES: list[GoldTable] = [carts, sales_per_minute]
by_name = pytest.mark.parametrize("name", [table.name for table in TABLES])


@pytest.fixture(scope="module")
def lake(new_lake: NewLake, press: Press) -> Lake:
    """A lake with a batch of the morning. The stream and the speed layer have also seen an order and a late event."""
    made = new_lake()
    *morning, late = told(*(bought(NOON + timedelta(minutes=n)) for n in range(6)))
    press.send(morning)
    ingest_available(made)
    assert refresh_gold(made, tables=TABLES) == dict.fromkeys(("carts", "sales_per_minute"), "recomputed")
    recompute_batch_layer(made, tables=TABLES)
    press.send([late, *told(bought(NOON + timedelta(hours=1)))])
    ingest_available(made)
    assert refresh_gold(made, tables=TABLES) == dict.fromkeys(("carts", "sales_per_minute"), "changed")
    return made


def bought(at: datetime) -> Teller:
    story = Teller(str(uuid7()), at).opens().adds(MUG, 2)
    return story.checks_out().gets_stock().is_confirmed().is_captured()


def test_streamed_and_served_tables_equal_a_batch_from_bronze(lake: Lake) -> None:
    found = verify(lake, tables=TABLES)
    names = {f"{layer}.{table.name}" for layer in ("gold", "serving") for table in TABLES}
    assert {verdict.name: verdict.equal for verdict in found.verdicts} == dict.fromkeys(names, True)
    assert all(verdict.difference.rows for verdict in found.verdicts), "without rows, nothing is proved"


@by_name
def test_lambda_serves_the_rows_that_kappa_has_streamed(lake: Lake, name: str) -> None:
    served, streamed = read_serving(lake, name), lake.read(f"gold.{name}")
    assert served is not None
    assertDataFrameEqual(served, streamed.select(*served.columns))
    assert plain(lake.read(f"batch.{name}").collect()) != plain(streamed.collect()), (
        "the speed layer has its part in it"
    )


@by_name
def test_till_sql_serves_the_same_rows_as_spark(lake: Lake, name: str) -> None:
    served = read_serving(lake, name)
    assert served is not None
    columns = ", ".join(f'"{column}"' for column in served.columns)
    answer = ask(lake, f"SELECT {columns} FROM serving.{name}")
    assert plain(answer.rows) == plain(served.collect())


@by_name
def test_tables_of_every_layer_are_described(lake: Lake, name: str) -> None:
    described = {layer: missing_comments(lake, f"{layer}.{name}") for layer in ("gold", "batch", "speed")}
    assert described == {"gold": [], "batch": [], "speed": ["speed.carts._empty"] if name == "carts" else []}


def test_replayed_rows_equal_the_live_ones(lake: Lake) -> None:
    replayed = replay(lake, "carts", tables=TABLES, swap=False)
    assert replayed.difference
    assert replayed.difference.none
    assert replayed.difference.rows == lake.read("gold.carts").count()
