"""The view of analysts on a lake that Spark has written: tables, questions, the report, a notebook.

`tests/unit/analytics/report/test_analysts_in_short.py` is the short version of this, for every run of the tests.
"""

import asyncio
import os
import re
import shutil
import signal
import threading
from collections import Counter
from collections.abc import Callable
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest
from click.testing import CliRunner
from deltalake import DeltaTable
from pyspark.sql import SparkSession

from analytics.lake import Lake
from analytics.log.progress import current_cut
from analytics.query.ask import ask
from analytics.query.freshness import TableState, measure_freshness
from analytics.report.questions import QUESTIONS
from analytics.serving.streaming_layer import refresh_gold
from infra.cli import till as program
from infra.local.processes.ports import free_ports
from infra.settings import Settings
from services.cart.events import CartOpened
from shared.errors import OperatorError
from tests.integration.analytics.conftest import NewLake
from tests.integration.analytics.rows import plain
from tests.roll import NOON, Press, ShopEvent, numbered
from tests.till import Ran, eventually
from tests.unit.analytics.report.notebook import assert_the_notebook_runs

pytestmark = [pytest.mark.slow, pytest.mark.timeout(600)]

Till = Callable[..., Ran]


@pytest.fixture(scope="module")
def lake(spark: SparkSession, filled_lake: Lake, tmp_path_factory: pytest.TempPathFactory) -> Lake:
    """A copy of the filled lake, with gold."""
    folder = tmp_path_factory.mktemp("analysts") / "lake"
    shutil.copytree(filled_lake.settings.lake, folder)
    copied = Lake(spark, filled_lake.settings.model_copy(update={"lake": str(folder)}))
    refresh_gold(copied)
    return copied


@pytest.fixture
def bare(stack_environment: dict[str, str], stack: object) -> Till:
    """Runs `till lake` in this process on any lake."""

    def run(*arguments: str, **settings: str) -> Ran:
        ran = CliRunner().invoke(program, ["lake", *arguments], env=stack_environment | settings)
        if isinstance(ran.exception, OperatorError):
            return Ran(1, ran.stdout, f"error: {ran.exception.message} {ran.exception.hint}")
        return Ran(ran.exit_code, ran.stdout, ran.stderr)

    return run


@pytest.fixture
def till(bare: Till, lake: Lake) -> Till:
    """Runs `till lake` on the lake with gold."""
    return lambda *arguments, **settings: bare(*arguments, **{"TILL_LAKE": lake.settings.lake} | settings)


def rows(lake: Lake, sql: str) -> list[tuple[Any, ...]]:
    return list(ask(lake, sql).rows)


@pytest.mark.parametrize("table", ["silver.cart_events", "silver.order_events", "gold.orders", "gold.funnel"])
def test_rows_read_without_spark_are_those_that_spark_has_written(lake: Lake, spark: SparkSession, table: str) -> None:
    frame = lake.read(table)
    there = plain(frame.collect())
    assert there
    named = ", ".join(f'"{column}"' for column in frame.columns)
    assert plain(rows(lake, f"SELECT {named} FROM {table}")) == there


def test_orders_in_gold_are_those_of_the_events(lake: Lake, story: list[ShopEvent]) -> None:
    """Counts only orders of the story: the topics also have events of other tests."""
    placed = {t.event.order_id for t in story if type(t.event).__name__ == "OrderPlaced"}
    confirmed = {t.event.order_id: t.event.total.amount for t in story if type(t.event).__name__ == "OrderConfirmed"}
    ours = {
        row[0]: row[1:] for row in rows(lake, "SELECT order_id, status, total FROM gold.orders") if row[0] in placed
    }
    assert ours.keys() == placed
    assert {order_id: total for order_id, (status, total) in ours.items() if status == "confirmed"} == confirmed


def test_all_questions_are_answered_in_all_formats(till: Till, lake: Lake) -> None:
    ran = till("questions", "--json")
    assert ran.code == 0, ran.err
    answers = {it["question"]: it["answer"] for it in ran.document}
    assert list(answers) == [question.title for question in QUESTIONS]
    assert len(answers) == 10
    counted = Counter(status for (status,) in rows(lake, "SELECT status FROM gold.orders"))
    assert sum(row["orders"] for row in answers["Why are orders cancelled?"]) == sum(counted.values())
    page = till("questions", "--markdown").out
    assert page.startswith("# Ten questions to the lake\n")
    assert page.count("\n```sql\n") == 10
    assert "## 10. Does the money add up?" in page


def test_the_lag_of_a_table_is_the_number_of_messages_sent_since(till: Till, lake: Lake, press: Press) -> None:
    before = _states(lake)
    customer = "0199b1c2-0000-7000-8000-000000000001"
    sent = numbered([(NOON, f"cart:0199b1c2-0000-7000-8000-00000000000{n}", CartOpened(customer, 0)) for n in range(3)])
    press.send(sent)
    after = _states(lake)
    for name in ("bronze.events", "silver.cart_events", "silver.quarantine", "gold.orders"):
        one, other = before[name].behind, after[name].behind
        assert one is not None
        assert other is not None
        assert other.events - one.events == 3, name
        assert other.seconds > 0
    assert after["silver.order_events"].behind == before["silver.order_events"].behind
    [(carts,)] = rows(lake, "SELECT count(*) FROM silver.cart_events")
    assert after["silver.cart_events"].rows == carts

    shown = till("tables")
    assert shown.code == 0, shown.err
    [line] = [line for line in shown.out.splitlines() if line.startswith("bronze.events")]
    assert re.search(r"\d+ events, \d+ \w+$", line)


def test_tables_are_listed_while_kafka_is_down(till: Till, lake: Lake) -> None:
    ran = till("tables", TILL_KAFKA_BOOTSTRAP=f"127.0.0.1:{free_ports(1)[0]}")
    assert ran.code == 0
    assert [line.split()[0] for line in ran.out.splitlines()[1:]] == lake.tables()
    assert ran.err.splitlines()[-1].endswith("does not answer. How far the tables are behind it is not known.")


def test_without_a_lake_every_command_says_how_to_make_one(bare: Till, tmp_path: Path) -> None:
    for command in (["tables"], ["report"], ["verify"], ["batch"], ["optimize"], ["retry"], ["replay", "orders"]):
        ran = bare(*command, TILL_LAKE=str(tmp_path))
        assert (ran.code, "till lake run" in ran.err) == (1, True), command


def test_without_kafka_run_and_stream_say_what_is_missing(bare: Till) -> None:
    for command in ("run", "stream"):
        ran = bare(command, TILL_KAFKA_BOOTSTRAP=f"127.0.0.1:{free_ports(1)[0]}")
        assert ran.code == 1
        assert "does not answer" in ran.err
        assert "till up" in ran.err


def test_without_java_a_command_says_so_at_once(till: Till, tmp_path: Path) -> None:
    ran = till("batch", TILL_JAVA_HOME=str(tmp_path))
    assert ran.code == 1
    assert "Java 17 or newer is needed" in ran.err


def test_a_report_is_one_page_without_links_to_other_files(till: Till, tmp_path: Path) -> None:
    file = tmp_path / "report.html"
    ran = till("report", "-o", str(file))
    assert ran.code == 0, ran.err
    page = file.read_text()
    assert [*re.findall("<h2>(.*?)</h2>", page)] == ["Sales", "From cart to order", "Products", "Fraud", "Freshness"]
    assert set(re.findall(r"\w+://[^\"'\s<]*", page)) <= {"http://www.w3.org/2000/svg", "http://www.w3.org/1999/xlink"}
    assert not re.search(r"<(script|link|img|iframe)|@import|url\((?!#)", page)
    plots = re.findall(r"<svg.*?</svg>", page, re.DOTALL)
    assert len(plots) >= 3
    for plot in plots:
        drawn = ElementTree.fromstring(plot)
        assert drawn.find("{http://www.w3.org/2000/svg}title") is not None, "a screen reader describes it"
        assert not re.search(r"#0[0-9]0[0-9]0[0-9]", plot), "all colours are variables of the page"
    ids = re.findall(r' id="([^"]+)"', page)
    assert len(ids) == len(set(ids))


def test_the_notebook_runs(stack_environment: dict[str, str], lake: Lake, monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in (stack_environment | {"TILL_LAKE": lake.settings.lake}).items():
        monkeypatch.setenv(name, value)
    assert_the_notebook_runs()


def test_verify_shows_a_row_that_was_changed_by_hand(
    till: Till, lake: Lake, spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    _lend(spark, monkeypatch)
    tampered = tmp_path / "lake"
    shutil.copytree(lake.settings.lake, tampered)
    DeltaTable(f"{tampered}/gold/funnel").update({"opened": "opened + 1"})
    ran = till("verify", TILL_LAKE=str(tampered))
    assert ran.code == 1, ran.err
    assert re.search(r"✗ gold.funnel  \d+ rows, 0 added, 0 gone, [1-9]\d* changed", ran.out)
    assert re.search(r"✓ gold.orders  [\d,]+ rows", ran.out)
    assert re.search(r"^streamed .*\n^batch ", ran.out, re.MULTILINE)
    assert "A gold table is a function of the set of events" in ran.out


def test_a_stream_ingests_until_ctrl_c(
    bare: Till, spark: SparkSession, new_lake: NewLake, story: list[ShopEvent], monkeypatch: pytest.MonkeyPatch
) -> None:
    _lend(spark, monkeypatch)
    empty = new_lake()

    def press_ctrl_c_when_all_tables_have_a_batch() -> None:
        eventually(lambda: current_cut(empty), "a batch is in all tables", 150)
        os.kill(os.getpid(), signal.SIGINT)

    presser = threading.Thread(target=press_ctrl_c_when_all_tables_have_a_batch)
    presser.start()
    ran = bare("stream", TILL_LAKE=empty.settings.lake)
    presser.join()
    assert ran.code == 0, ran.err
    [(taken,)] = rows(empty, "SELECT count(*) FROM bronze.events")
    assert taken >= len(story)
    assert f"New events from Kafka: {taken:,}, in " in ran.out
    assert not spark.streams.active


def _states(lake: Lake) -> dict[str, TableState]:
    return {table.name: table for table in asyncio.run(measure_freshness(lake)).tables}


def _lend(spark: SparkSession, monkeypatch: pytest.MonkeyPatch) -> None:
    """Lends the tests' Spark to the command, which would start and stop one of its own."""

    @contextmanager
    def lent(_settings: Settings) -> Any:
        yield spark

    monkeypatch.setattr("infra.cli.commands.lake.spark.open_logged_spark", lent)
