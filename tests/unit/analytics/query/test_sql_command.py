"""`till sql` as an analyst uses it: fast, in several formats, with one clear line when something is wrong."""

import csv
import json
import resource
from collections.abc import Callable
from datetime import UTC, datetime
from io import StringIO
from pathlib import Path

import pytest
from click.testing import CliRunner

from analytics.lake import LakeFiles
from infra.cli import till
from infra.settings import Settings
from shared.errors import OperatorError
from tests.till import Ran, Till
from tests.unit.analytics.delta import commit

EVENT = {
    "event_id": "e1",
    "event_type": "ItemAdded",
    "event_time": datetime(2026, 11, 16, 12, tzinfo=UTC),
    "offset": 7,
    "value": bytes(range(20)),
    "item_added": {"sku": "MUG-350", "quantity": 2, "unit_price": {"amount": 1190, "currency": "EUR"}},
}


@pytest.fixture(scope="module")
def environment(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    home = tmp_path_factory.mktemp("home")
    lake = LakeFiles(Settings.load(home=home))
    commit(lake, "silver.cart_events", [EVENT], offsets={"cart.events": {"0": 8}})
    commit(lake, "gold.orders", [EVENT | {"event_id": f"e{n}", "offset": n} for n in range(150)])
    return {"TILL_HOME": str(home), "PATH": "/usr/bin:/bin"}


Sql = Callable[..., Ran]


@pytest.fixture
def sql(environment: dict[str, str]) -> Sql:
    """Runs `till sql` in this process: to start another one takes longer than the query."""

    def run(*arguments: str, **settings: str) -> Ran:
        ran = CliRunner().invoke(till, ["sql", *arguments], env=environment | settings)
        if isinstance(ran.exception, OperatorError):
            return Ran(1, ran.stdout, f"error: {ran.exception.message} {ran.exception.hint}")
        return Ran(ran.exit_code, ran.stdout, ran.stderr)

    return run


def test_an_answer_is_aligned_and_takes_less_than_two_seconds(environment: dict[str, str]) -> None:
    """CPU seconds, including the start of Python. No Java is on the PATH."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    ran = Till(environment)("sql", "SELECT * FROM silver.cart_events")
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    assert (ran.code, ran.err) == (0, "")
    assert ran.out.splitlines() == [
        "event_id  event_type  event_time           offset  value                                  item_added",
        "e1        ItemAdded   2026-11-16 12:00:00       7  x000102030405060708090a0b… (20 bytes)"
        "  {sku: MUG-350, quantity: 2, unit_price: {amount: 1190, currency: EUR}}",
    ]
    assert after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime < 2


def test_machines_get_json_and_csv(sql: Sql) -> None:
    [event] = sql("SELECT *, 10::HUGEINT ** 30 AS big FROM silver.cart_events", "--json").document
    assert event == EVENT | {"event_time": "2026-11-16T12:00:00Z", "value": bytes(range(20)).hex(), "big": 1e30}
    lines = list(csv.DictReader(StringIO(sql("SELECT * FROM silver.cart_events", "--csv").out)))
    assert lines[0]["event_time"] == "2026-11-16T12:00:00Z"
    assert json.loads(lines[0]["item_added"]) == EVENT["item_added"]


def test_a_long_answer_is_cut_for_people_and_whole_for_machines(sql: Sql) -> None:
    query = 'SELECT event_id FROM gold.orders ORDER BY "offset"'
    ran = sql(query)
    assert len(ran.out.splitlines()) == 1 + 100
    assert ran.err == "The first 100 rows; there are more. All of them: --limit 0\n"
    assert len(sql(query, "--limit", "0").out.splitlines()) == 1 + 150
    assert len(sql(query, "--json").document) == 150
    exact = sql(query, "--limit", "150")
    assert (len(exact.out.splitlines()), exact.err) == (151, "")


@pytest.mark.parametrize(
    ("arguments", "code", "message"),
    [
        (("SELECT stats FROM gold.orders",), 2, "error: There is no column stats. There are: event_id"),
        (("SELECT * FROM gold.order",), 2, "error: There is no table gold.order. Did you mean gold.orders?"),
        (("SELECT * FROM gold.funnel",), 1, "error: There is no gold.funnel yet in "),
        (("DROP TABLE gold.orders",), 2, "error: The lake is only read here"),
        (("SELECT 1", "--at", "-1d"), 1, "error: silver.cart_events has no version that shows "),
        (("SELECT 1", "--at", "2999-01-01T00:00:00Z"), 2, "is in the future"),
    ],
)
def test_an_error_is_explained_in_one_line(sql: Sql, arguments: tuple[str, ...], code: int, message: str) -> None:
    ran = sql(*arguments)
    assert ran.code == code, ran.err
    assert message in ran.err
    assert "Traceback" not in ran.err


def test_a_home_without_a_lake_says_how_to_make_one(sql: Sql, tmp_path: Path) -> None:
    ran = sql("SELECT count(*) FROM gold.orders", TILL_HOME=str(tmp_path))
    assert ran.code == 1
    assert ran.err.endswith("It is made by: till lake run")


def test_time_travel_prints_the_versions_that_were_read(sql: Sql) -> None:
    ran = sql("SELECT count(*) FROM silver.cart_events", "--at", "-0s")
    assert ran.out.split() == ["count_star()", "1"]
    assert ran.err.startswith("As of 20")
    assert ran.err.endswith("ago: silver.cart_events version 0.\n")
