"""The real process dies by SIGKILL between two stores, at each place where it could. After a restart all is well.

The places are named in the code (`crashpoint`): each comment there says what is durable by then.
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
from tests.integration.kit import Record
from tests.till import eventually

POINTS = ["committed, not answered", "committed, not sent", "sent, not deleted", "handled, not committed"]
TOPICS = {"cart": "cart.events", "stock": "stock.events"}


def test_every_place_that_the_code_names_is_tested_here() -> None:
    sources = [path.read_text() for path in Path(shared.__path__[0]).rglob("*.py")]
    assert {point for source in sources for point in re.findall(r'\bcrashpoint\("([^"]+)"\)', source)} == set(POINTS)


@dataclass(frozen=True)
class Story:
    """A cart with a mug in it, from before the process dies."""

    ann: str
    """Her token."""
    olga: str
    """The operator's."""
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
    """One for each death, all told and done: nothing is on its way when the next process starts."""
    with started(stack_environment) as shop:
        stories = {point: begin(shop) for point in POINTS}
        settled(shop)
        assert shop.stop() == 0, shop.log.read_text()
    return stories


def settled(shop: Shop) -> None:
    """Outboxes empty, and every consumer at the end of its topics."""
    shop.everything_published()
    eventually(lambda: lag(shop) == {}, "no consumer lags behind")


def lag(shop: Shop) -> dict[tuple[str, str, int], int]:
    """By consumer, topic and partition: messages that are still to be handled."""
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


def ask(shop: Shop, point: str, story: Story, key: str) -> httpx.Response:
    """What leads to the place: a change of a price where a consumer dies, else something put into the cart."""
    headers = {"Idempotency-Key": key}
    if point == "handled, not committed":
        with shop.client(story.olga) as operator:
            details = {"name": "Enamel mug ☕", "price": price(1290), "stock": 50}
            return operator.put(f"/v1/products/{story.mug.sku}", json=details, headers=headers)
    with shop.client(story.ann) as ann:
        return ann.post(f"{story.cart}/items", json={"sku": story.mug.sku, "quantity": 3}, headers=headers)


def die(shop: Shop, point: str, story: Story, key: str) -> httpx.Response | None:
    """The answer, where one came before the end."""
    try:
        answer = ask(shop, point, story, key)
    except httpx.TransportError:
        answer = None
    eventually(lambda: shop.process.poll() is not None, f"it died at: {point}")
    assert shop.process.returncode == -signal.SIGKILL, shop.log.read_text()
    return answer


def told(records: list[Record], stream_id: str) -> list[Record]:
    return [record for record in sorted(records) if record.header("ce_subject") == stream_id]


def check_topic(shop: Shop, stream_id: str) -> int:
    """I3: versions 1..n in the order of offsets, a duplicate byte for byte the same. How many came twice."""
    records = told(shop.topic(TOPICS[stream_id.partition(":")[0]]), stream_id)
    first: dict[int, Record] = {}
    for record in records:
        version = int(record.header("ce_streamversion"))
        assert first.setdefault(version, record).content == record.content, "a duplicate that is none"
    assert list(first) == list(range(1, len(first) + 1)), "out of order, or lost"
    service = {"cart": "cart", "stock": "catalog"}[stream_id.partition(":")[0]]
    stored = shop.fetch(service, "SELECT value FROM events WHERE stream_id = $1 ORDER BY version", stream_id)
    assert [row["value"] for row in stored] == [record.value for record in first.values()], "store and topic differ"
    return len(records) - len(first)


def check_views(shop: Shop, story: Story, cents: int) -> None:
    """I5: what shoppers see is what the streams say."""
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
def test_after_a_death_at_this_place_nothing_is_lost_nothing_twice_and_nothing_out_of_order(
    stack_environment: dict[str, str], stories: dict[str, Story], point: str
) -> None:
    story, key = stories[point], str(uuid7())
    with started(stack_environment, TILL_CRASH_AT=point) as dying:
        answer = die(dying, point, story, key)
    if point == "committed, not answered":
        assert answer is None, "it was answered: then it did not die there"

    with started(stack_environment) as shop:
        before = dead_letters(shop)
        again = ask(shop, point, story, key)
        assert again.status_code == 200, again.text
        assert again.headers["Idempotency-Replayed"] == "true", "what was committed has been forgotten"
        assert answer is None or answer.content == again.content
        settled(shop)

        duplicates = sum(check_topic(shop, stream_id) for stream_id in story.streams)
        if point != "handled, not committed":  # there the relay may have been killed anywhere
            assert (duplicates > 0) == (point == "sent, not deleted"), f"{duplicates} duplicates"
        check_views(shop, story, cents=1290 if point == "handled, not committed" else 1190)
        with shop.client(story.ann) as ann:
            [line] = ann.get(story.cart).json()["lines"]
        assert line["quantity"] == (1 if point == "handled, not committed" else 4), "the effect was had twice, or never"
        assert dead_letters(shop) == before
        assert shop.stop() == 0, shop.log.read_text()


@pytest.fixture
def rush(stack_environment: dict[str, str], stack: object) -> list[tuple[str, Any]]:
    """Shoppers at work when the process is killed, anywhere: what each of them was told."""
    told: list[tuple[str, Any]] = []
    with started(stack_environment) as shop:
        carts = [begin(shop) for _ in range(4)]

        def shopper(n: int) -> None:
            story = carts[n % len(carts)]
            with shop.client(story.ann) as ann:
                while True:
                    try:
                        answer = ann.put(f"{story.cart}/items/{story.mug.sku}", json={"quantity": len(told) % 98 + 1})
                    except httpx.TransportError:
                        return
                    if answer.status_code == 200:
                        told.append((story.cart, answer.json()))

        with ThreadPoolExecutor(8) as pool:
            shoppers = [pool.submit(shopper, n) for n in range(8)]
            eventually(lambda: len(told) > 300, "the shop is busy")
            shop.process.kill()
            for one in shoppers:
                one.result()
    return told


def test_killed_in_the_middle_of_a_rush_the_shop_has_everything_it_said_yes_to(
    stack_environment: dict[str, str], rush: list[tuple[str, Any]]
) -> None:
    with started(stack_environment) as shop:
        settled(shop)
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
