"""Questions to a lake of real Delta tables: what is answered, and what can never be done this way."""

from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from deltalake import DeltaTable

from analytics.reading.asking import ask, found_tables
from analytics.reading.queries import WrongQuery
from shared.errors import OperatorError
from shared.settings import Settings
from tests.unit.lake.delta import EVENTS, ITEM, commit

NOON = datetime(2026, 11, 16, 12, tzinfo=UTC)
NEWER = EVENTS.set(5, pa.field("item_added", pa.struct([*ITEM, ("gift", pa.bool_())]))).append(
    pa.field("item_removed", pa.struct([("sku", pa.string())]))
)


def added(n: int) -> dict[str, object]:
    price = {"amount": 1190, "currency": "EUR"}
    return {
        "event_id": f"e{n}",
        "event_type": "ItemAdded",
        "event_time": NOON + timedelta(seconds=n),
        "offset": n,
        "value": bytes([0, 0, 0, 0, n]),
        "item_added": {"sku": f"MUG-{n % 3}", "quantity": n, "unit_price": price},
    }


@pytest.fixture(scope="module")
def lake(tmp_path_factory: pytest.TempPathFactory) -> Settings:
    """Carts of two schemas in several files, orders partitioned by day, and a table without a row."""
    settings = Settings.load(home=tmp_path_factory.mktemp("home"))
    commit(settings, "silver.cart_events", [added(n) for n in range(5)])
    commit(settings, "silver.cart_events", [added(5) | {"item_removed": {"sku": "X"}}], NEWER)
    commit(settings, "silver.cart_events", [added(n) for n in (6, 7)])
    commit(settings, "silver.quarantine", [])
    days = pa.schema([("order_id", pa.string()), ("day", pa.date32()), ("total", pa.decimal128(38, 0))])
    orders = [{"order_id": f"o{n}", "day": NOON.date() if n else None, "total": 10**20 + n} for n in range(3)]
    commit(settings, "gold.orders", orders, days, partition_by=["day"])
    return settings


def rows(lake: Settings, sql: str) -> list[tuple[object, ...]]:
    return list(ask(lake, sql).rows)


def test_every_table_of_the_lake_is_there_by_its_name(lake: Settings) -> None:
    assert found_tables(lake) == ["silver.cart_events", "silver.quarantine", "gold.orders"]
    shown = rows(lake, "SELECT schema || '.' || name FROM (SHOW ALL TABLES) WHERE database = 'memory'")
    assert {name for (name,) in shown} == set(found_tables(lake))


def test_a_table_that_is_being_made_is_not_there_yet(lake: Settings) -> None:
    Path(lake.lake, "gold/funnel/_delta_log").mkdir(parents=True)
    assert "gold.funnel" not in found_tables(lake)
    assert rows(lake, "SELECT 1") == [(1,)]


def test_a_question_is_answered_from_all_files_old_and_new(lake: Settings) -> None:
    sold = rows(lake, "SELECT item_added.sku, sum(item_added.quantity) FROM silver.cart_events GROUP BY 1 ORDER BY 1")
    assert sold == [("MUG-0", 9), ("MUG-1", 12), ("MUG-2", 7)]
    news = "SELECT event_id, item_added.gift, item_removed.sku FROM silver.cart_events WHERE item_removed IS NOT NULL"
    assert rows(lake, news) == [("e5", None, "X")]


def test_moments_come_in_utc_also_inside_of_others(lake: Settings) -> None:
    answer = ask(
        lake, "SELECT max(event_time), [max(event_time)], max(event_time) - min(event_time) FROM silver.cart_events"
    )
    last = (NOON + timedelta(seconds=7)).replace(tzinfo=None)
    assert list(answer.rows) == [(last, [last], timedelta(seconds=7))]
    assert answer.types == ["TIMESTAMP WITH TIME ZONE", "TIMESTAMP WITH TIME ZONE[]", "INTERVAL"]
    assert rows(lake, "SELECT date_trunc('hour', event_time) FROM silver.cart_events LIMIT 1") == [
        (NOON.replace(tzinfo=None),)
    ]


def test_a_table_without_rows_has_its_columns(lake: Settings) -> None:
    assert rows(lake, "SELECT count(*), count(item_added.sku) FROM silver.quarantine") == [(0, 0)]


def test_columns_that_only_the_folders_know_are_there(lake: Settings) -> None:
    assert rows(lake, "SELECT day, count(*) FROM gold.orders GROUP BY 1 ORDER BY 1") == [(NOON.date(), 2), (None, 1)]


def test_the_order_of_an_answer_is_kept(lake: Settings) -> None:
    asked = rows(lake, "SELECT event_time, event_id FROM silver.cart_events ORDER BY event_id DESC")
    assert [event_id for _, event_id in asked] == [f"e{n}" for n in range(7, -1, -1)]


@pytest.mark.parametrize(
    ("sql", "told"),
    [
        ("SELECT offst FROM silver.cart_events", "There is no column offst. Did you mean offset?"),
        ("SELECT c.kind FROM silver.cart_events c", "There is no column kind. There are: event_id, event_type"),
        (
            "SELECT item_added.skuu FROM silver.cart_events",
            'Could not find key "skuu" in struct Candidate Entries: "sku"',
        ),
        ("SELECT * FROM silver.cart_event", "There is no table silver.cart_event. Did you mean silver.cart_events?"),
        ("SELECT * FROM orders", "There is no table orders. Did you mean gold.orders?"),
        ("SELEC 1", 'Syntax error at or near "SELEC": …SELEC 1'),
        (
            "SELECT sum(offset) FROM silver.cart_events",
            'Syntax error at or near "offset". If offset is meant as a column',
        ),
        ("SELECT 1; SELECT 2", "There is more than one question in it"),
        ("  ", "There is no question in it"),
        ("SELECT 'ten'::INT", "Could not convert string 'ten' to INT32"),
    ],
)
def test_a_wrong_question_is_told_in_a_line(lake: Settings, sql: str, told: str) -> None:
    with pytest.raises(WrongQuery) as wrong:
        rows(lake, sql)
    assert str(wrong.value).startswith(told)
    assert "\n" not in str(wrong.value)


def test_files_that_are_elsewhere_are_fetched_by_delta_rs(lake: Settings, monkeypatch: pytest.MonkeyPatch) -> None:
    class Elsewhere(DeltaTable):
        def file_uris(self, *arguments: Any, **more: Any) -> list[str]:
            return [f"s3://bucket{file}" for file in super().file_uris(*arguments, **more)]

    monkeypatch.setattr("analytics.reading.asking.DeltaTable", Elsewhere)
    assert rows(lake, "SELECT count(*), count(item_removed) FROM silver.cart_events") == [(8, 1)]
    assert rows(lake, "SELECT count(day) FROM gold.orders") == [(2,)]
    assert rows(lake, "SELECT * FROM silver.quarantine") == []


def test_what_is_served_is_not_there_before_a_batch(lake: Settings) -> None:
    with pytest.raises(OperatorError, match=r"no serving.orders yet: no batch was computed") as missing:
        rows(lake, "SELECT * FROM serving.orders")
    assert missing.value.hint == "It is made by: till lake batch"


def test_a_promised_table_that_is_not_there_yet_is_named(lake: Settings) -> None:
    with pytest.raises(OperatorError, match=r"no gold.funnel yet in") as missing:
        rows(lake, "SELECT * FROM gold.funnel")
    assert missing.value.hint == "It is made by: till lake run"


@pytest.mark.parametrize(
    "sql",
    [
        "INSERT INTO silver.cart_events SELECT * FROM silver.cart_events",
        "DELETE FROM silver.cart_events",
        "DROP VIEW silver.cart_events",
        "SET enable_external_access = true",
        "ATTACH 'other.db'",
        "INSTALL httpfs",
        "COPY (SELECT 1) TO '{file}' (FORMAT parquet)",
        "EXPLAIN ANALYZE COPY (SELECT 1) TO '{file}'",
        "WITH gone AS (COPY (SELECT 1) TO '{file}' (FORMAT parquet, USE_TMP_FILE false)) SELECT * FROM gone",
        "SELECT * FROM (WITH gone AS (COPY (SELECT 1) TO '{file}') SELECT * FROM gone)",
        "SELECT * FROM query('WITH gone AS (COPY (SELECT 1) TO ''{file}'' (USE_TMP_FILE false)) SELECT * FROM gone')",
        "PRAGMA database_list",
        "CALL enable_logging()",
    ],
)
def test_nothing_can_be_written(lake: Settings, sql: str) -> None:
    """Not even over a file of the lake, which may be read."""
    [file] = [str(file) for file in Path(lake.lake, "gold/orders").rglob("*.parquet") if "day=2026" in str(file)]
    before = Path(file).read_bytes()
    with pytest.raises(WrongQuery, match=r"The lake is only read here|query\(\) is not available"):
        rows(lake, sql.format(file=file))
    assert Path(file).read_bytes() == before


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT * FROM '{secret}'",
        "SELECT * FROM read_text('{secret}')",
        "SELECT * FROM read_csv('{lake}/silver/cart_events/../../../till.env')",
        "SELECT * FROM glob('{home}/*')",
        "SELECT * FROM parquet_metadata('{secret}')",
        "SELECT (SELECT count(*) FROM read_blob('/proc/self/environ')) FROM silver.cart_events",
    ],
)
def test_no_file_but_those_of_the_tables_can_be_read(lake: Settings, sql: str) -> None:
    secret = lake.home / "till.env"
    secret.write_text("TILL_MASTER_KEY=secret")
    with pytest.raises(WrongQuery, match=r"There is no table|file system operations are disabled"):
        rows(lake, sql.format(secret=secret, lake=lake.lake, home=lake.home))


def test_variables_of_python_are_no_tables(lake: Settings) -> None:
    secret = pa.table({"key": ["secret"]})
    with pytest.raises(WrongQuery, match="There is no table secret"):
        rows(lake, "SELECT * FROM secret")
    assert secret.num_rows == 1


def test_a_table_whose_log_is_broken_is_named(tmp_path: Path) -> None:
    settings = Settings.load(home=tmp_path)
    commit(settings, "gold.orders", [added(1)])
    Path(settings.lake, "gold/orders/_delta_log/00000000000000000000.json").write_text("{}{")
    with pytest.raises(OperatorError, match=r"gold.orders cannot be read"):
        rows(settings, "SELECT * FROM gold.orders")


def test_a_file_that_is_gone_is_the_operators_to_know(tmp_path: Path) -> None:
    settings = Settings.load(home=tmp_path)
    commit(settings, "gold.orders", [added(1)])
    for file in Path(settings.lake).rglob("*.parquet"):
        file.unlink()
    with pytest.raises(OperatorError, match="A file of the lake cannot be read"):
        rows(settings, "SELECT * FROM gold.orders")
