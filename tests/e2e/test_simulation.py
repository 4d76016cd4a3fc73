"""Simulated shoppers in a whole shop with a real provider, and the audit of its books."""

import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import httpx
import orjson
import pytest

from infra.local.throwaway import settings_of, throwaway
from infra.simulation.audit.ledger import read_ledger
from shared.http.auth import Tokens
from tests.till import Ran, Till, eventually

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def till() -> Iterator[Till]:
    """A shop of its own, because the audit covers everybody who shops in that time."""
    with throwaway() as environment:
        till = Till(environment | {"TILL_PSP_TIMEOUT": "1"})
        up = till("up", "--json")
        assert up.code == 0, up.err
        yield till


def run(till: Till, *arguments: str) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-m", *arguments],
        cwd=ROOT,
        env=till.environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )


def test_shoppers_of_all_kinds_come_and_the_books_balance(till: Till, tmp_path: Path) -> None:
    ran = till("simulate", "--shoppers", "6", "--seconds", "20", "--seed", "6", "--fraud", "0.4", "--json")
    assert ran.code == 0, ran.out + ran.err
    summary = ran.document
    assert summary["violations"] == []

    orders = summary["orders"]
    assert {"confirmed", "in_review", "cancelled: payment_declined", "cancelled: fraud"} <= orders.keys()
    assert sum(orders.values()) == summary["checkouts"]
    assert not any(problem.startswith(("0", "5")) for problem in summary["problems"])

    provider = httpx.get(f"http://127.0.0.1:{till.port('TILL_PSP_PORT')}/ledger").json()["totals"]["EUR"]
    money = summary["money"]["EUR"]
    assert money["confirmed"] == provider["captured"] - provider["refunded"] > 0
    assert money["refunded"] > 0
    assert (money["captured"], money["refunded"]) == (provider["captured"], provider["refunded"])

    ledger = Path(summary["ledger"])
    assert ledger.parent == till.home / "simulations"
    assert len(read_ledger(ledger).answers) == sum(latency["count"] for latency in summary["requests"].values())
    _check_that_the_audit_finds_a_planted_order(till, ledger, tmp_path / "planted.jsonl")


def _check_that_the_audit_finds_a_planted_order(till: Till, ledger: Path, planted: Path) -> None:
    """Checks that the ledger balances when it is read again, but not with one more checkout."""
    shutil.copy(ledger, planted)
    with run(till, "tests.load.books", "check", str(planted), "--patience", "1") as process:
        assert process.wait(60) == 0
    more = {"kind": "CheckedOut", "order_id": "lost", "cart_id": "c", "customer_id": "nobody", "token": "tok_ok"}
    with planted.open("ab") as file:
        file.write(orjson.dumps(more | {"lines": {}, "amount": 1, "currency": "EUR"}) + b"\n")
    with run(till, "tests.load.books", "check", str(planted), "--patience", "1") as process:
        out, _ = process.communicate(timeout=60)
    assert process.returncode == 1
    assert "order lost was accepted, and exists 0 times" in out


def test_a_demo_shows_the_events_of_an_order(till: Till) -> None:
    ran = till("demo", "--seconds", "4", "--no-lake")
    assert ran.code == 0, ran.out + ran.err
    assert_the_events_are_shown(ran.out)


@pytest.mark.slow
@pytest.mark.timeout(600)
def test_a_demo_runs_the_lake_whose_money_is_that_of_the_provider(till: Till) -> None:
    with till.begin("demo", "--seconds", "4") as process:
        ran = Ran(0, *process.communicate(timeout=580))
    assert process.returncode == 0, ran.out + ran.err
    assert_the_events_are_shown(ran.out)

    provider = httpx.get(f"http://127.0.0.1:{till.port('TILL_PSP_PORT')}/ledger").json()["totals"]["EUR"]
    net = provider["captured"] - provider["refunded"]
    kept = "SELECT sum(total) AS sold, (SELECT sum(captured - refunded) FROM gold.orders) AS kept FROM gold.orders "
    assert till("sql", f"{kept} WHERE status = 'confirmed'", "--json").document == [{"sold": net, "kept": net}]
    assert not (till.home / "logs" / "lake.log").read_text().count("Traceback")
    assert "jdk.incubator" not in ran.err, "the output of Spark is in its log"
    assert "behind Kafka: silver" in till("status").out


def assert_the_events_are_shown(out: str) -> None:
    rows = [line.split()[2:4] for line in out.splitlines() if " s  " in line]
    events = [service + " " + event for service, event in rows]
    for event in ("cart CartCheckedOut", "order OrderConfirmed", "catalog StockSold", "payment PaymentCaptured"):
        assert event in events, out
    assert "The books balance" in out


def test_a_load_run_succeeds_and_writes_a_report(till: Till) -> None:
    with run(till, "tests.load", "--here", "--users", "4", "--seconds", "3") as process:
        out, _ = process.communicate(timeout=120)
    assert process.returncode == 0, out
    assert "The books balance" in out
    assert "checkout to decided" in (till.home / "load" / "report.html").read_text()


def test_a_load_run_fails_when_the_books_do_not_balance(till: Till) -> None:
    """Pieces are taken off a shelf during the run, which the audit finds as missing stock."""
    settings = settings_of(till.environment)
    operator = {"Authorization": f"Bearer {Tokens(settings).mint('thief', ['operator'], 600)}"}
    shop = f"http://127.0.0.1:{settings.shop_port}/v1/products/KIT-1001"
    ledger = till.home / "load" / "ledger.jsonl"
    ledger.unlink(missing_ok=True)
    with run(till, "tests.load", "--here", "--users", "2", "--seconds", "3", "--patience", "1") as process:
        eventually(lambda: ledger.exists() and ledger.stat().st_size > 0, "the books are open", 60)
        product = httpx.get(shop).json()
        taken = {"name": product["name"], "price": product["price"], "stock": product["available"] - 50}
        assert httpx.put(shop, json=taken, headers=operator).status_code == 200
        out, _ = process.communicate(timeout=120)
    assert process.returncode == 1, out
    assert "stock: KIT-1001 had" in out
