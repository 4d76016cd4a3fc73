"""Each test plants a bug in a running shop that `till verify` must find: a check that never failed proves nothing."""

import asyncio
import multiprocessing
import os
import signal
import sqlite3
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import pytest

from infra.cli.render.program import program
from infra.local.processes.ports import free_ports
from infra.settings import Settings
from services.operations.verify.findings import Findings
from services.operations.verify.verify import CheckJob, VerifyRequest, verify
from services.shop.services import shop_services
from services.shop.settings import ShopSettings
from shared.errors import OperatorError
from shared.service import Service
from tests.integration.services.operations.conftest import Check
from tests.till import RunTill, Till, eventually

Sql = Callable[..., list[Any]]
EVENT = "stream_id, version, event_id, type, time, correlation_id, causation_id, actor, traceparent, value"


def named(findings: Findings) -> list[tuple[str, str]]:
    return [(violation.stream, violation.what) for violation in findings.violations]


@contextmanager
def changed(sql: Sql, service: str, table: str, key: str, column: str, value: Any) -> Iterator[None]:
    """Changes a value by hand until the end of the block."""
    where = {"events": "stream_id || '@' || version", "orders": "order_id", "products": "sku"}[table]
    [[before]] = sql(service, f"SELECT {column} FROM {table} WHERE {where} = $1", key)
    sql(service, f"UPDATE {table} SET {column} = $2 WHERE {where} = $1", key, value)
    try:
        yield
    finally:
        sql(service, f"UPDATE {table} SET {column} = $2 WHERE {where} = $1", key, before)


@contextmanager
def deleted(sql: Sql, service: str, stream: str, version: int) -> Iterator[None]:
    [row] = sql(
        service,
        f"DELETE FROM events WHERE (stream_id, version) = ($1, $2) RETURNING position, {EVENT}",
        stream,
        version,
    )
    try:
        yield
    finally:
        places = ", ".join(f"${n}" for n in range(1, 12))
        sql(service, f"INSERT INTO events (position, {EVENT}) VALUES ({places})", *row)


@pytest.fixture
def confirmed(sql: Sql) -> str:
    """The id of a confirmed order."""
    [[order_id]] = sql("order", "SELECT order_id FROM orders WHERE status = 'confirmed' ORDER BY order_id LIMIT 1")
    return str(order_id)


def test_in_a_shop_without_bugs_everything_holds(till: Till) -> None:
    ran = till("verify", "--json")
    assert ran.code == 0, ran.out + ran.err
    checks = {it["check"]: it["looked_at"] for it in ran.document["checks"]}
    assert all(checks[f"store = topic: {kind}.events"] > 50 for kind in ("cart", "order", "payment", "stock"))
    assert all(checks[f"view = fold: {view}"] > 50 for view in ("order.orders", "catalog.products", "cart.products"))
    assert checks["stock"] > 50
    assert checks["money"] > 50
    assert checks["flow"] == 6


def test_a_shop_that_sells_meanwhile_gives_no_false_alarm(till: Till, check: Check, sql: Sql) -> None:
    before = sql("order", "SELECT count(*) FROM orders")
    with till.begin("simulate", "--shoppers", "8", "--seconds", "5", "--seed", "9", "--json") as selling:
        eventually(lambda: sql("order", "SELECT count(*) FROM orders") > before, "somebody buys", 60)
        verified = 0
        while selling.poll() is None:
            for job in (
                ("log", "order"),
                ("log", "catalog"),
                ("folds", "order"),
                ("folds", "catalog", "stock"),
                ("money",),
            ):
                assert named(check(*job, patience=60.0)) == []
            verified += 1
        assert verified
        out, err = selling.communicate()
    assert selling.returncode == 0, out + err


def test_checks_in_several_processes_find_the_same(
    shop: Settings, sql: Sql, confirmed: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(
        "services.operations.verify.verify.list_jobs", lambda _: [CheckJob("log", "order"), CheckJob("folds", "order")]
    )
    looked: Counter[str] = Counter()
    ask = VerifyRequest(shop, shop_services, None, 5.0)
    with changed(sql, "order", "orders", confirmed, "status", "placed"):
        log, views = asyncio.run(verify(ask, lambda check, more: looked.update({check: more}), processes=2))
    assert (log.total, views.total) == (0, 1)
    assert looked == {"log order": log.looked_at, "folds order": views.looked_at}


def killed_in_other_processes(settings: ShopSettings) -> Sequence[Service]:
    """Lists the services; in a process that was started for checks, kills that process."""
    if multiprocessing.parent_process():
        os.kill(os.getpid(), signal.SIGKILL)
    return shop_services(settings)


def test_a_killed_process_gives_an_error_with_cause_and_command(
    shop: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    # A single job: a Kafka client that is cancelled while it connects would leave its socket open.
    monkeypatch.setattr("services.operations.verify.verify.list_jobs", lambda _: [CheckJob("folds", "order")])
    with pytest.raises(OperatorError, match="A process of the check was killed"):
        asyncio.run(verify(VerifyRequest(shop, killed_in_other_processes, None, 5.0), processes=2))


def slow_in_other_processes(settings: ShopSettings) -> Sequence[Service]:
    if multiprocessing.parent_process():
        time.sleep(60)
    return shop_services(settings)


def test_when_one_check_fails_verify_does_not_wait_for_the_others(
    shop: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The other process would sleep for a minute. Here the check of money fails, because no provider answers."""
    without_provider = shop.model_copy(update={"psp_url": f"http://127.0.0.1:{free_ports(1)[0]}"})
    jobs = [CheckJob("folds", "order"), CheckJob("money")]
    monkeypatch.setattr("services.operations.verify.verify.list_jobs", lambda _: jobs)
    began = time.monotonic()
    with pytest.raises(OperatorError, match=r"The payment provider at .* does not answer"):
        asyncio.run(verify(VerifyRequest(without_provider, slow_in_other_processes, None, 5.0), processes=2))
    assert time.monotonic() - began < 30
    assert multiprocessing.active_children() == []


def test_verify_since_looks_at_recent_events_only(run_till: RunTill) -> None:
    recent, all_of_it = run_till("verify", "--since", "-1s", "--json"), run_till("verify", "--json")
    assert (recent.code, all_of_it.code) == (0, 0), recent.out + recent.err
    looked_at = [sum(it["looked_at"] for it in ran.document["checks"]) for ran in (recent, all_of_it)]
    assert looked_at[0] < looked_at[1]


@pytest.mark.parametrize(
    ("column", "value", "part"),
    [("value", b"\0\0\0\0\1tampered", "value"), ("actor", "somebody else", "ce_actor")],
)
def test_a_stored_event_that_was_changed_is_named(
    check: Check, sql: Sql, confirmed: str, column: str, value: Any, part: str
) -> None:
    stream = f"order:{confirmed}"
    with changed(sql, "order", "events", f"{stream}@2", column, value):
        found = check("log", "order")
    assert named(found) == [(f"{stream}@2", f"It differs from what is stored: {part}.")]
    assert found.violations[0].look == f"till history {stream}"
    assert found.violations[0].position.startswith("order.events/")
    assert check("log", "order").total == 0


def test_an_event_that_was_deleted_from_its_store_is_found(check: Check, sql: Sql, confirmed: str) -> None:
    stream = f"order:{confirmed}"
    with deleted(sql, "order", stream, 2):
        found = check("log", "order")
    assert (f"{stream}@2", "It is in the topic, and was never stored.") in named(found)
    assert any("Versions are missing in the store" in violation.what for violation in found.violations)


def test_an_event_that_was_never_sent_to_its_topic_is_found(check: Check, sql: Sql) -> None:
    copied = EVENT.replace("stream_id", "'order:planted'", 1).replace("event_id", "gen_random_uuid()", 1)
    sql("order", f"INSERT INTO events ({EVENT}) SELECT {copied} FROM events WHERE version = 1 LIMIT 1")
    try:
        assert named(check("log", "order")) == [("order:planted@1", "It is stored, and not in order.events.")]
    finally:
        sql("order", "DELETE FROM events WHERE stream_id = 'order:planted'")


def test_a_row_with_a_wrong_value_is_found(check: Check, sql: Sql, confirmed: str) -> None:
    with changed(sql, "order", "orders", confirmed, "status", "cancelled"):
        found = check("folds", "order")
    what = "Its row is not what its events make it: status is 'cancelled', not 'confirmed'."
    assert named(found) == [(f"order:{confirmed}", what)]
    assert check("folds", "order").total == 0


def test_a_missing_row_a_late_row_and_a_row_without_events_are_found(check: Check, sql: Sql) -> None:
    [row] = sql("catalog", "DELETE FROM products WHERE sku = (SELECT min(sku) FROM products) RETURNING *")
    [[behind]] = sql("catalog", "SELECT max(sku) FROM products")
    names = ", ".join(row.keys())
    sql("catalog", f"INSERT INTO products ({names}) VALUES ('PLANTED-1', 'Planted', 1, 'EUR', 1, false, 1)")
    with changed(sql, "catalog", "products", behind, "version", 0):
        found = check("folds", "catalog", "catalog.products")
    places = ", ".join(f"${n}" for n in range(1, len(row) + 1))
    sql("catalog", "DELETE FROM products WHERE sku = 'PLANTED-1'")
    sql("catalog", f"INSERT INTO products ({names}) VALUES ({places})", *row.values())
    whats = dict(named(found))
    assert whats[f"stock:{row['sku']}"] == "It has no row."
    assert whats["stock:PLANTED-1"] == "It has a row, and no event at all."
    assert behind in " ".join(whats)
    assert check("folds", "catalog", "catalog.products").total == 0


def test_a_check_with_many_violations_stops_and_says_how_many_are_left(
    check: Check, sql: Sql, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("services.operations.verify.suspects.SUSPECTS_AT_ONCE", 2)
    monkeypatch.setattr("services.operations.verify.suspects.ENOUGH_VIOLATIONS", 3)
    wrong = [row[0] for row in sql("order", "UPDATE orders SET total = total + 1 RETURNING order_id")]
    try:
        found = check("folds", "order")
    finally:
        sql("order", "UPDATE orders SET total = total - 1")
    assert found.total == 4, "the first two, and two more"
    assert f"{len(wrong) - 4:,} more look wrong in view = fold: order.orders." in found.notes[0]
    assert named(check("folds", "order")) == []


def test_the_copy_of_a_product_in_another_service_is_checked_too(check: Check, sql: Sql) -> None:
    [[sku]] = sql("cart", "SELECT min(sku) FROM products")
    with changed(sql, "cart", "products", sku, "price", 1):
        assert [stream for stream, _ in named(check("folds", "catalog", "cart.products"))] == [f"stock:{sku}"]


def test_pieces_still_held_for_a_confirmed_order_are_found(check: Check, sql: Sql) -> None:
    [[stream, version]] = sql("catalog", "SELECT stream_id, version FROM events WHERE type = 'StockSold' LIMIT 1")
    with deleted(sql, "catalog", stream, version):
        found = check("folds", "catalog", "stock")
    [violation] = found.violations
    assert violation.stream == stream
    assert violation.position.startswith("order:")
    assert "are still held" in violation.what
    assert check("folds", "catalog", "stock").total == 0


def test_a_confirmed_order_whose_pieces_were_never_reserved_is_found(check: Check, sql: Sql) -> None:
    [[stream, version]] = sql("catalog", "SELECT stream_id, version FROM events WHERE type = 'StockSold' LIMIT 1")
    [[reserved]] = sql(
        "catalog",
        "SELECT max(version) FROM events WHERE stream_id = $1 AND version < $2 AND type = 'StockReserved'",
        stream,
        version,
    )
    with deleted(sql, "catalog", stream, version), deleted(sql, "catalog", stream, reserved):
        found = check("folds", "catalog", "stock")
    assert any("0 are sold to it, 0 are still held" in what for _, what in named(found)), named(found)


@contextmanager
def tampered_ledger(shop: Settings, change: str, undo: str, payment_id: str) -> Iterator[None]:
    with sqlite3.connect(shop.home / "psp" / "ledger.sqlite") as book:
        book.execute(change, (payment_id,))
        book.commit()
        try:
            yield
        finally:
            book.execute(undo, (payment_id,))
            book.commit()


def test_money_that_the_provider_took_and_no_order_owes_is_found(
    check: Check, sql: Sql, shop: Settings, confirmed: str
) -> None:
    [[payment_id]] = sql("order", "SELECT payment_id FROM orders WHERE order_id = $1", confirmed)
    more = "UPDATE movements SET amount = amount {} 1 WHERE payment_id = ? AND kind = 'captured'"
    with tampered_ledger(shop, more.format("+"), more.format("-"), payment_id):
        found = check("money")
    whats = " ".join(what for _, what in named(found))
    assert {stream for stream, _ in named(found)} == {f"order:{confirmed}", f"payment:{payment_id}"}
    assert "is recorded as psp-" in whats
    assert "It is confirmed: due" in whats
    assert check("money").total == 0


def test_a_refund_that_nobody_requested_is_found(check: Check, sql: Sql, shop: Settings, confirmed: str) -> None:
    [[payment_id]] = sql("order", "SELECT payment_id FROM orders WHERE order_id = $1", confirmed)
    give = (
        "INSERT INTO movements (payment_id, at, kind, amount, currency, token, reason)"
        " SELECT payment_id, at, 'refunded', amount, currency, token, '' FROM movements"
        " WHERE payment_id = ? AND kind = 'captured'"
    )
    take = "DELETE FROM movements WHERE payment_id = ? AND kind = 'refunded'"
    with tampered_ledger(shop, give, take, payment_id):
        found = check("money")
    assert any("kept nothing" in what for _, what in named(found)), named(found)


def test_a_violation_gives_its_place_a_command_and_exit_code_1(
    run_till: RunTill, check: Check, sql: Sql, confirmed: str
) -> None:
    with changed(sql, "order", "orders", confirmed, "status", "placed"):
        ran = run_till("verify", "--patience", "1")
    assert ran.code == 1
    assert f"order:{confirmed}" in ran.out
    assert f"→ {program()} history order:{confirmed}" in ran.out
    eventually(lambda: check("folds", "order").total == 0, "it is as it was")
