"""Streamed, recomputed, served and replayed gold are the same rows: one table of sums, on a small story.

`test_lambda_and_kappa.py` is the long version: all tables, late and repeated events, crashes and repairs.
"""

from datetime import datetime, timedelta

import pytest
from pyspark.testing import assertDataFrameEqual
from uuid_utils import uuid7

from analytics.incremental.refresh_loop import refresh_gold
from analytics.ingest.stream import ingest_available
from analytics.lake import Lake
from analytics.models.marts.sales import sales_per_minute
from analytics.query.ask import ask
from analytics.serving.batch_layer import recompute_batch_layer
from analytics.serving.replay import replay
from analytics.serving.serving_view import read_serving
from analytics.verify import verify
from tests.integration.analytics.conftest import NewLake
from tests.integration.analytics.rows import plain
from tests.roll import NOON, Press
from tests.unit.analytics.stories import MUG, Teller, told

TABLES = [sales_per_minute]


@pytest.fixture(scope="module")
def lake(new_lake: NewLake, press: Press) -> Lake:
    """A lake with a batch of the morning, and an order since, which the stream and the speed layer have seen."""
    made = new_lake()
    press.send(told(*(bought(NOON + timedelta(minutes=n)) for n in range(6))))
    ingest_available(made)
    assert refresh_gold(made, tables=TABLES) == {"sales_per_minute": "recomputed"}
    recompute_batch_layer(made, tables=TABLES)
    press.send(told(bought(NOON + timedelta(hours=1))))
    ingest_available(made)
    assert refresh_gold(made, tables=TABLES) == {"sales_per_minute": "changed"}
    return made


def bought(at: datetime) -> Teller:
    story = Teller(str(uuid7()), at).opens().adds(MUG, 2)
    return story.checks_out().gets_stock().is_confirmed().is_captured()


def test_streamed_and_served_sales_equal_a_batch_from_bronze(lake: Lake) -> None:
    found = verify(lake, tables=TABLES)
    assert [(verdict.name, verdict.equal) for verdict in found.verdicts] == [
        ("gold.sales_per_minute", True),
        ("serving.sales_per_minute", True),
    ]
    assert all(verdict.difference.rows for verdict in found.verdicts), "without rows, nothing is proved"
    assert lake.read("batch.sales_per_minute").count() < lake.read("gold.sales_per_minute").count()


def test_spark_and_till_sql_are_served_the_same_sales(lake: Lake) -> None:
    served = read_serving(lake, "sales_per_minute")
    assert served is not None
    assertDataFrameEqual(served, lake.read("gold.sales_per_minute").select(*served.columns))
    columns = ", ".join(f'"{column}"' for column in served.columns)
    answer = ask(lake, f"SELECT {columns} FROM serving.sales_per_minute")
    assert plain(answer.rows) == plain(served.collect())


def test_replayed_sales_equal_the_live_ones(lake: Lake) -> None:
    replayed = replay(lake, "sales_per_minute", tables=TABLES, swap=False)
    assert replayed.difference
    assert replayed.difference.none
    assert replayed.difference.rows == lake.read("gold.sales_per_minute").count()
