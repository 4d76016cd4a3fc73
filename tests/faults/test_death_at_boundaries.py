"""Kills the real process with SIGKILL at every crash point and checks that nothing is lost or doubled after a restart.

A crash point is a named place between two durable steps (`crashpoint("...")` in the code). The comment at each of
them says what is durable by then.
"""

import re
import signal
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import confluent_kafka
import httpx
import pytest
from uuid_utils import uuid7

import shared
from tests.e2e.shop import Product, Shop, new_sku, open_cart, price, put_in, put_product, started
from tests.integration.shared.topics import Record
from tests.till import eventually

POINTS = ["committed, not answered", "committed, not sent", "sent, not deleted", "handled, not committed"]
TOPICS = {"cart": "cart.events", "stock": "stock.events"}


def test_every_crash_point_of_the_kernel_is_armed_by_a_test() -> None:
    sources = [path.read_text() for path in Path(shared.__path__[0]).rglob("*.py")]
    assert {point for source in sources for point in re.findall(r'\bcrashpoint\("([^"]+)"\)', source)} == set(POINTS)


@dataclass(frozen=True)
class Story:
    """A cart with a mug in it that exists before the process dies."""

    ann: str
    """The token of the shopper Ann."""
    olga: str
    """The token of the operator Olga."""
    cart: str
    mug: Product

    @property
    def streams(self) -> list[str]:
        return [self.cart.replace("/v1/carts/", "cart:"), f"stock:{self.mug.sku}"]


def begin(shop: Shop) -> Story:
    with shop.staff("operator") as operator, shop.guest() as ann:
        mug = put_product(operator, new_sku(), 1190)
        cart = open_cart(ann)
        put_in(ann, cart, mug)
        return Story(token_of(ann), token_of(operator), cart, mug)


def token_of(client: httpx.Client) -> str:
    return str(client.headers["Authorization"]).removeprefix("Bearer ")


@pytest.fixture(scope="module")
def stories(stack_environment: dict[str, str], stack: object) -> dict[str, Story]:
    """Prepares one cart for each crash point and waits until no message is in flight."""
    with started(stack_environment) as shop:
        stories = {point: begin(shop) for point in POINTS}
        wait_until_quiet(shop)
        assert shop.stop() == 0, shop.log.read_text()
    return stories


def wait_until_quiet(shop: Shop) -> None:
    """Waits until all outboxes are empty and every consumer has reached the end of its topics."""
    shop.wait_until_published()
    eventually(lambda: lag(shop) == {}, "no consumer lags behind")


def lag(shop: Shop) -> dict[tuple[str, str, int], int]:
    """Counts the unhandled messages of each consumer, topic and partition."""
    consumer = confluent_kafka.Consumer({"bootstrap.servers": shop.settings.kafka_bootstrap, "group.id": "lag"})
    try:
        behind = {}
        for service in ("cart", "catalog", "order", "payment"):
            for name, topic, partition, offset in shop.fetch(service, "SELECT * FROM offsets"):
                _, end = consumer.get_watermark_offsets(confluent_kafka.TopicPartition(topic, partition), timeout=10)
                behind[name, topic, partition] = end - offset
        return {where: left for where, left in behind.items() if left}
    finally:
        consumer.close()


def send_request(shop: Shop, point: str, story: Story, key: str) -> httpx.Response:
    """Sends the request that leads to the crash point: a price change for a consumer's, else an item for the cart."""
    headers = {"Idempotency-Key": key}
    if point == "handled, not committed":
        with shop.client(story.olga) as operator:
            details = {"name": "Enamel mug ☕", "price": price(1290), "stock": 50}
            return operator.put(f"/v1/products/{story.mug.sku}", json=details, headers=headers)
    with shop.client(story.ann) as ann:
        return ann.post(f"{story.cart}/items", json={"sku": story.mug.sku, "quantity": 3}, headers=headers)


def die(shop: Shop, point: str, story: Story, key: str) -> httpx.Response | None:
    """Sends the request, waits until the process is dead, and returns the answer if one came before that."""
    try:
        answer = send_request(shop, point, story, key)
    except httpx.TransportError:
        answer = None
    eventually(lambda: shop.process.poll() is not None, f"it died at: {point}")
    assert shop.process.returncode == -signal.SIGKILL, shop.log.read_text()
    return answer


def records_of(records: list[Record], stream_id: str) -> list[Record]:
    return [record for record in sorted(records) if record.header("ce_subject") == stream_id]


def check_topic(shop: Shop, stream_id: str) -> int:
    """Checks I3: versions are 1..n in offset order, and a duplicate is identical. Returns the number of duplicates."""
    records = records_of(shop.topic(TOPICS[stream_id.partition(":")[0]]), stream_id)
    first: dict[int, Record] = {}
    for record in records:
        version = int(record.header("ce_streamversion"))
        assert first.setdefault(version, record).content == record.content, "a duplicate with other content"
    assert list(first) == list(range(1, len(first) + 1)), "out of order, or lost"
    service = {"cart": "cart", "stock": "catalog"}[stream_id.partition(":")[0]]
    stored = shop.fetch(service, "SELECT value FROM events WHERE stream_id = $1 ORDER BY version", stream_id)
    assert [row["value"] for row in stored] == [record.value for record in first.values()], "store and topic differ"
    return len(records) - len(first)


def check_views(shop: Shop, story: Story, cents: int) -> None:
    """Checks I5: the views that shoppers see equal the fold of the streams."""
    with shop.client(story.ann) as ann:
        shown = ann.get(f"/v1/products/{story.mug.sku}").json()
        assert (shown["price"], shown["available"]) == (price(cents), 50)
    versions = [
        shop.fetch(service, "SELECT price, version FROM products WHERE sku = $1", story.mug.sku)[0]
        for service in ("cart", "catalog")
    ]
    last = shop.fetch("catalog", "SELECT max(version) FROM events WHERE stream_id = $1", story.streams[1])[0][0]
    assert [tuple(row) for row in versions] == [(cents, last)] * 2


def dead_letters(shop: Shop) -> int:
    return len(shop.topic("cart.dlq")) + len(shop.topic("catalog.dlq"))


@pytest.mark.parametrize("point", POINTS)
def test_a_death_at_a_crash_point_loses_nothing_doubles_nothing_and_keeps_the_order(
    stack_environment: dict[str, str], stories: dict[str, Story], point: str
) -> None:
    story, key = stories[point], str(uuid7())
    with started(stack_environment, TILL_CRASH_AT=point) as dying:
        answer = die(dying, point, story, key)
    if point == "committed, not answered":
        assert answer is None, "an answer came, so the process did not die at this crash point"

    with started(stack_environment) as shop:
        before = dead_letters(shop)
        again = send_request(shop, point, story, key)
        assert again.status_code == 200, again.text
        assert again.headers["Idempotency-Replayed"] == "true", "the committed request is unknown after the restart"
        assert answer is None or answer.content == again.content
        wait_until_quiet(shop)

        duplicates = sum(check_topic(shop, stream_id) for stream_id in story.streams)
        if point != "handled, not committed":  # the relay may have been killed at any moment there
            assert (duplicates > 0) == (point == "sent, not deleted"), f"{duplicates} duplicates"
        check_views(shop, story, cents=1290 if point == "handled, not committed" else 1190)
        with shop.client(story.ann) as ann:
            [line] = ann.get(story.cart).json()["lines"]
        assert line["quantity"] == (1 if point == "handled, not committed" else 4), (
            "the request had its effect twice, or never"
        )
        assert dead_letters(shop) == before
        assert shop.stop() == 0, shop.log.read_text()


@pytest.fixture
def rush(stack_environment: dict[str, str], stack: object) -> list[tuple[str, Any]]:
    """Kills the process while shoppers are busy; returns every answer that a shopper got before."""
    answers: list[tuple[str, Any]] = []
    with started(stack_environment) as shop:
        carts = [begin(shop) for _ in range(4)]

        def shopper(n: int) -> None:
            story = carts[n % len(carts)]
            with shop.client(story.ann) as ann:
                while True:
                    try:
                        answer = ann.put(
                            f"{story.cart}/items/{story.mug.sku}", json={"quantity": len(answers) % 98 + 1}
                        )
                    except httpx.TransportError:
                        return
                    if answer.status_code == 200:
                        answers.append((story.cart, answer.json()))

        with ThreadPoolExecutor(8) as pool:
            shoppers = [pool.submit(shopper, n) for n in range(8)]
            eventually(lambda: len(answers) > 300, "the shop is busy")
            shop.process.kill()
            for one in shoppers:
                one.result()
    return answers


def test_a_shop_killed_in_a_rush_has_every_change_that_it_confirmed(
    stack_environment: dict[str, str], rush: list[tuple[str, Any]]
) -> None:
    with started(stack_environment) as shop:
        wait_until_quiet(shop)
        carts = Counter(cart for cart, _ in rush)
        assert len(carts) == 4
        for path in carts:
            stream_id = path.replace("/v1/carts/", "cart:")
            check_topic(shop, stream_id)
            with shop.staff("support") as support:
                for cart, shown in rush:
                    if cart == path and shown["version"] % 10 == 0:
                        assert support.get(path, params={"version": shown["version"]}).json() == shown
                assert support.get(path).json()["version"] >= max(s["version"] for c, s in rush if c == path)
        assert shop.stop() == 0, shop.log.read_text()
