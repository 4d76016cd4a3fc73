"""SQL on a lake of real Delta tables: what is answered, and what is never allowed."""

from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from deltalake import DeltaTable

from analytics.lake import LakeFiles
from analytics.query.ask import ask
from analytics.query.parse import WrongQuery
from infra.settings import Settings
from shared.errors import OperatorError
from tests.unit.analytics.delta import EVENTS, ITEM, commit, create, insert

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
def lake(tmp_path_factory: pytest.TempPathFactory) -> LakeFiles:
    """Carts of two schemas in several files, orders partitioned by day, and an empty table."""
    made = LakeFiles(Settings.load(home=tmp_path_factory.mktemp("home")))
    commit(made, "silver.cart_events", [added(n) for n in range(5)])
    commit(made, "silver.cart_events", [added(5) | {"item_removed": {"sku": "X"}}], NEWER)
    commit(made, "silver.cart_events", [added(n) for n in (6, 7)])
    commit(made, "silver.quarantine", [])
    days = pa.schema([("order_id", pa.string()), ("day", pa.date32()), ("total", pa.decimal128(38, 0))])
    orders = [{"order_id": f"o{n}", "day": NOON.date() if n else None, "total": 10**20 + n} for n in range(3)]
    commit(made, "gold.orders", orders, days, partition_by=["day"])
    return made


def rows(lake: LakeFiles, sql: str) -> list[tuple[object, ...]]:
    return list(ask(lake, sql).rows)


def test_every_table_of_the_lake_can_be_queried_by_name(lake: LakeFiles) -> None:
    assert lake.tables() == ["silver.cart_events", "silver.quarantine", "gold.orders"]
    shown = rows(lake, "SELECT schema || '.' || name FROM (SHOW ALL TABLES) WHERE database = 'memory'")
    assert {name for (name,) in shown} == set(lake.tables())


def test_a_table_without_a_commit_is_not_listed(lake: LakeFiles) -> None:
    Path(lake.settings.lake, "gold/funnel/_delta_log").mkdir(parents=True)
    assert "gold.funnel" not in lake.tables()
    assert rows(lake, "SELECT 1") == [(1,)]


def test_a_query_reads_files_of_older_and_newer_schemas(lake: LakeFiles) -> None:
    sold = rows(lake, "SELECT item_added.sku, sum(item_added.quantity) FROM silver.cart_events GROUP BY 1 ORDER BY 1")
    assert sold == [("MUG-0", 9), ("MUG-1", 12), ("MUG-2", 7)]
    news = "SELECT event_id, item_added.gift, item_removed.sku FROM silver.cart_events WHERE item_removed IS NOT NULL"
    assert rows(lake, news) == [("e5", None, "X")]


def test_timestamps_are_in_utc_also_within_lists(lake: LakeFiles) -> None:
    answer = ask(
        lake, "SELECT max(event_time), [max(event_time)], max(event_time) - min(event_time) FROM silver.cart_events"
    )
    last = (NOON + timedelta(seconds=7)).replace(tzinfo=None)
    assert list(answer.rows) == [(last, [last], timedelta(seconds=7))]
    assert answer.types == ["TIMESTAMP WITH TIME ZONE", "TIMESTAMP WITH TIME ZONE[]", "INTERVAL"]
    assert rows(lake, "SELECT date_trunc('hour', event_time) FROM silver.cart_events LIMIT 1") == [
        (NOON.replace(tzinfo=None),)
    ]


def test_an_empty_table_has_its_columns(lake: LakeFiles) -> None:
    assert rows(lake, "SELECT count(*), count(item_added.sku) FROM silver.quarantine") == [(0, 0)]


def test_partition_columns_can_be_queried(lake: LakeFiles) -> None:
    assert rows(lake, "SELECT day, count(*) FROM gold.orders GROUP BY 1 ORDER BY 1") == [(NOON.date(), 2), (None, 1)]


def test_rows_come_in_the_order_of_the_query(lake: LakeFiles) -> None:
    asked = rows(lake, "SELECT event_time, event_id FROM silver.cart_events ORDER BY event_id DESC")
    assert [event_id for _, event_id in asked] == [f"e{n}" for n in range(7, -1, -1)]


@pytest.mark.parametrize(
    ("sql", "message"),
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
        ("SELECT 1; SELECT 2", "There is more than one query in it"),
        ("  ", "There is no query in it"),
        ("SELECT 'ten'::INT", "Could not convert string 'ten' to INT32"),
    ],
)
def test_a_wrong_query_is_explained_in_one_line(lake: LakeFiles, sql: str, message: str) -> None:
    with pytest.raises(WrongQuery) as wrong:
        rows(lake, sql)
    assert str(wrong.value).startswith(message)
    assert "\n" not in str(wrong.value)


def test_files_in_an_object_store_are_fetched_by_delta_rs(lake: LakeFiles, monkeypatch: pytest.MonkeyPatch) -> None:
    class Elsewhere(DeltaTable):
        def file_uris(self, *arguments: Any, **more: Any) -> list[str]:
            return [f"s3://bucket{file}" for file in super().file_uris(*arguments, **more)]

    monkeypatch.setattr("analytics.lake.DeltaTable", Elsewhere)
    assert rows(lake, "SELECT count(*), count(item_removed) FROM silver.cart_events") == [(8, 1)]
    assert rows(lake, "SELECT count(day) FROM gold.orders") == [(2,)]
    assert rows(lake, "SELECT * FROM silver.quarantine") == []


def test_in_a_lake_by_url_every_table_of_the_catalog_is_found(tmp_path: Path) -> None:
    """A URL is not a folder that can be listed: its tables are those of the catalog that exist."""
    remote = LakeFiles(Settings.load(home=tmp_path, lake=f"file://{tmp_path}/remote"))
    for name in ("gold.carts", "silver.cart_events", "batch.orders"):
        create(remote, name)
    insert(remote, "gold.carts", [{"cart_id": "c1", "status": "open", "lines": [{"sku": "MUG-1", "quantity": 2}]}])
    assert remote.tables() == ["silver.cart_events", "gold.carts", "batch.orders"]
    assert rows(remote, "SELECT cart_id, lines[1].sku FROM gold.carts") == [("c1", "MUG-1")]


def test_a_serving_view_needs_a_batch(lake: LakeFiles) -> None:
    with pytest.raises(OperatorError, match=r"no serving.orders yet: no batch was computed") as missing:
        rows(lake, "SELECT * FROM serving.orders")
    assert missing.value.hint == "It is made by: till lake batch"


def test_a_table_that_is_not_made_yet_is_named(lake: LakeFiles) -> None:
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
def test_nothing_can_be_written(lake: LakeFiles, sql: str) -> None:
    """A file of the lake may be read, and is not overwritten either."""
    [file] = [
        str(file) for file in Path(lake.settings.lake, "gold/orders").rglob("*.parquet") if "day=2026" in str(file)
    ]
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
def test_no_file_but_those_of_the_tables_can_be_read(lake: LakeFiles, sql: str) -> None:
    secret = lake.settings.home / "till.env"
    secret.write_text("TILL_MASTER_KEY=secret")
    with pytest.raises(WrongQuery, match=r"There is no table|file system operations are disabled"):
        rows(lake, sql.format(secret=secret, lake=lake.settings.lake, home=lake.settings.home))


def test_python_variables_are_not_tables(lake: LakeFiles) -> None:
    secret = pa.table({"key": ["secret"]})
    with pytest.raises(WrongQuery, match="There is no table secret"):
        rows(lake, "SELECT * FROM secret")
    assert secret.num_rows == 1


def test_a_table_whose_log_is_broken_is_named(tmp_path: Path) -> None:
    damaged = LakeFiles(Settings.load(home=tmp_path))
    commit(damaged, "gold.orders", [added(1)])
    Path(damaged.settings.lake, "gold/orders/_delta_log/00000000000000000000.json").write_text("{}{")
    with pytest.raises(OperatorError, match=r"gold.orders cannot be read"):
        rows(damaged, "SELECT * FROM gold.orders")


def test_a_missing_file_is_an_error_for_the_operator(tmp_path: Path) -> None:
    damaged = LakeFiles(Settings.load(home=tmp_path))
    commit(damaged, "gold.orders", [added(1)])
    for file in Path(damaged.settings.lake).rglob("*.parquet"):
        file.unlink()
    with pytest.raises(OperatorError, match="A file of the lake cannot be read"):
        rows(damaged, "SELECT * FROM gold.orders")
