"""The lake finds fraud and payment acts on it: a burst of declined cards raises alerts that stop the next payments."""

import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx
import pytest
from confluent_kafka.schema_registry import SchemaRegistryClient
from confluent_kafka.schema_registry.avro import AvroDeserializer
from confluent_kafka.serialization import MessageField, SerializationContext
from uuid_utils import uuid7

from infra.local.processes.ports import free_ports
from tests.e2e.provider import moved, provider
from tests.e2e.shop import Product, Shop, buy, new_sku, order, put_product, settled, started
from tests.till import TILL, eventually

SPARK_SECONDS = 300.0
"""Seconds for Spark to start and compile its first batch, with room for a busy machine."""


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
def alerts(environment: dict[str, str]) -> Iterator[None]:
    """Runs `till lake alerts` as a process of its own."""
    log = Path(environment["TILL_HOME"]) / "alerts.log"
    with log.open("ab") as out:
        process = subprocess.Popen([TILL, "lake", "alerts"], env=environment, stdout=out, stderr=out)
    try:
        yield
        assert process.poll() is None, log.read_text()
    finally:
        process.kill()
        process.wait()


def worst(shop: Shop, token: str) -> int:
    """Returns the highest score of the alerts about this token in the topic; 0 if there are none."""
    with SchemaRegistryClient({"url": shop.settings.registry_url}) as client:
        read, place = AvroDeserializer(client), SerializationContext("fraud.alerts", MessageField.VALUE)
        found: list[Any] = [read(record.value, place) for record in shop.topic("fraud.alerts")]
    return max((alert["score"] for alert in found if alert["payment_token"] == token), default=0)


def decline_payments(guest: httpx.Client, mug: Product, token: str, times: int) -> None:
    """Has payments declined, few enough that the risk check of payment itself does not hold them."""
    paths = [buy(guest, mug, token=token) for _ in range(times)]
    assert {settled(guest, path)["reason"] for path in paths} == {"payment_declined"}


def reasons(guest: httpx.Client, path: str, event_type: str) -> list[str]:
    """Returns the reasons that the only event of this type in the order's timeline gives."""
    page: dict[str, Any] = guest.get(f"{path}/events").json()
    [event] = [event for event in page["items"] if event["type"] == event_type]
    return list(event["data"]["reasons"])


@pytest.mark.timeout(3 * SPARK_SECONDS)
@pytest.mark.slow
def test_cards_under_test_are_refused_and_their_tester_is_held(shop: Shop, psp: str) -> None:
    card = f"tok_declined_{uuid7().hex[-12:]}"
    with shop.staff("operator") as operator, shop.guest() as ann, shop.guest() as bob, shop.guest() as cid:
        mug = put_product(operator, new_sku(), 100)
        with alerts(shop.environment):
            for guest in (ann, bob):
                decline_payments(guest, mug, card, 4)
            eventually(lambda: worst(shop, card) == 95, "an alert about the card", SPARK_SECONDS)
        other = f"tok_declined_{uuid7().hex[-12:]}"
        with shop.guest() as dan, shop.guest() as eve:  # while the stream of alerts is down
            for guest in (dan, eve):
                decline_payments(guest, mug, other, 4)
        with alerts(shop.environment):
            eventually(lambda: worst(shop, other) == 95, "an alert about the other card", SPARK_SECONDS)
        ids = [record.header("ce_id") for record in shop.topic("fraud.alerts")]
        assert len(ids) == len(set(ids)), "an alert was sent twice after the restart"

        path = buy(cid, mug, token=card)
        refused = settled(cid, path)
        assert (refused["status"], refused["reason"]) == ("cancelled", "fraud")
        assert moved(psp, refused["payment_id"]) == []
        words = "alert of score 95: at least 8 declined payments with one means of payment within 10 minutes"
        assert reasons(cid, path, "PaymentDeclined") == [words]

        path = buy(ann, mug)
        eventually(lambda: order(ann, path)["status"] == "in_review", "it is held")
        words = "alert of score 60: at least 4 declined payments of one customer within 10 minutes"
        assert reasons(ann, path, "PaymentHeldForReview") == [words]
