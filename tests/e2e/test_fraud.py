"""Fraud, found by the lake and answered by payment: a burst of declined cards, alerts, and what becomes of who is next.

The stream of alerts is a real process, and dies on the way.
"""

import signal
import subprocess
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx
import pytest
from uuid_utils import uuid7

from infra.local.ports import free_ports
from tests.e2e.provider import moved, provider
from tests.e2e.shop import Product, Shop, buy, new_sku, order, put_product, settled, started
from tests.till import TILL, eventually

SENT = "alerts sent, not committed"
SPARK_SECONDS = 300.0
"""It has to start, and its first batch to be compiled: seconds, on a machine that does nothing else."""


@pytest.fixture(scope="module")
def own_environment(stack_environment: dict[str, str], stack: object) -> dict[str, str]:
    [port] = free_ports(1)
    return stack_environment | {"TILL_PSP_PORT": str(port), "TILL_PSP_LATENCY_MS": "5"}


@pytest.fixture(scope="module")
def psp(own_environment: dict[str, str]) -> Iterator[str]:
    with provider(own_environment) as url:
        yield url


@pytest.fixture(scope="module")
def shop(own_environment: dict[str, str], psp: str) -> Iterator[Shop]:
    with started(own_environment) as shop:
        yield shop


@contextmanager
def alerts(environment: dict[str, str], **more: str) -> Iterator[subprocess.Popen[bytes]]:
    """`till lake alerts`, killed at the end if it still runs."""
    log = Path(environment["TILL_HOME"]) / "alerts.log"
    with log.open("ab") as out:
        process = subprocess.Popen([TILL, "lake", "alerts"], env=environment | more, stdout=out, stderr=out)
    try:
        yield process
    finally:
        if process.poll() is None:
            process.kill()
            process.wait()


def about(shop: Shop, *subjects: str) -> Counter[str]:
    """How often the topic has each alert about them, by its id."""
    records = shop.topic("fraud.alerts")
    return Counter(r.header("ce_id") for r in records if any(it.encode() in (r.value or b"") for it in subjects))


def customer(guest: httpx.Client) -> str:
    return str(guest.post("/v1/carts").json()["customer_id"])


def is_burnt(guest: httpx.Client, mug: Product, token: str, times: int) -> None:
    """Declined, again and again, a little less often than payment itself would mind."""
    paths = [buy(guest, mug, token=token) for _ in range(times)]
    assert {settled(guest, path)["reason"] for path in paths} == {"payment_declined"}


def reasons(guest: httpx.Client, path: str, event_type: str) -> list[str]:
    """As the order's timeline tells them."""
    page: dict[str, Any] = guest.get(f"{path}/events").json()
    [event] = [event for event in page["items"] if event["type"] == event_type]
    return list(event["data"]["reasons"])


@pytest.mark.timeout(2 * SPARK_SECONDS)
def test_cards_that_were_tested_are_refused_and_who_tested_them_is_held(shop: Shop, psp: str) -> None:
    run = uuid7().hex[-12:]
    card = f"tok_declined_{run}"
    with (
        shop.staff("operator") as operator,
        shop.guest() as ann,
        shop.guest() as bob,
        shop.guest() as cid,
        shop.guest() as dan,
    ):
        mug = put_product(operator, new_sku(), 100)
        for guest in (ann, bob):
            is_burnt(guest, mug, card, 4)
        with alerts(shop.environment, TILL_CRASH_AT=SENT) as process:
            assert process.wait(SPARK_SECONDS) == -signal.SIGKILL
        sent = about(shop, card)
        assert sent

        refused = eventually(lambda: _final(cid, buy(cid, mug, token=card), "fraud"), "payment has heard of it", 30)
        assert refused["status"] == "cancelled"
        assert moved(psp, refused["payment_id"]) == []
        words = "alert of score 95: at least 8 declined payments with one means of payment within 10 minutes"
        assert reasons(cid, f"/v1/orders/{refused['order_id']}", "PaymentDeclined") == [words]

        path = buy(ann, mug)
        eventually(lambda: order(ann, path)["status"] == "in_review", "it is held")
        words = "alert of score 60: at least 4 declined payments of one customer within 10 minutes"
        assert reasons(ann, path, "PaymentHeldForReview") == [words]

        with alerts(shop.environment):
            is_burnt(dan, mug, f"tok_declined_{run}_d", 4)
            who = customer(dan)
            eventually(lambda: about(shop, who), "an alert about Dan", SPARK_SECONDS)
        assert set((about(shop, card, who)).values()) == {1}, (
            "it was killed and started again, and sent each alert once"
        )
        assert about(shop, card) == sent


def _final(guest: httpx.Client, path: str, reason: str) -> dict[str, Any] | None:
    found = settled(guest, path)
    return found if found["reason"] == reason else None
