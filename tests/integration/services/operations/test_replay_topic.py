"""A slice of a topic: to be read as JSON lines, or byte for byte in a topic of its own."""

import asyncio
import json
from collections.abc import Callable, Iterator
from datetime import timedelta
from typing import Any

import confluent_kafka.admin
import pytest
from uuid_utils import uuid7

from infra.settings import Settings
from shared.envelope import from_millis
from tests.integration.shared.topics import Record, delete_topics, read_topic, send
from tests.till import Ran, RunTill

Sql = Callable[..., list[Any]]


@pytest.fixture
def into(shop: Settings) -> Iterator[str]:
    name = f"slice.{uuid7().hex[-12:]}"
    yield name
    if read_names(shop) & {name}:
        asyncio.run(delete_topics(shop, [name]))


def read_names(shop: Settings) -> set[str]:
    admin = confluent_kafka.admin.AdminClient({"bootstrap.servers": shop.kafka_bootstrap})
    return set(admin.list_topics(timeout=10).topics)


def lines(ran: Ran) -> list[dict[str, Any]]:
    assert ran.code == 0, ran.err
    return [json.loads(line) for line in ran.out.splitlines()]


def test_a_slice_is_read_by_time_and_by_condition(run_till: RunTill, shop: Settings, sql: Sql) -> None:
    everything = read_topic(shop, "order.events")
    placed = lines(run_till("replay", "order.events", "--where", "type == 'OrderPlaced' and data.total.amount > 0"))
    assert len(placed) == sql("order", "SELECT count(*) FROM orders")[0][0]
    assert {line["stream"] for line in placed} == {f"order:{line['data']['order_id']}" for line in placed}

    times = sorted(record.timestamp for record in everything)
    start, end = from_millis(times[len(times) // 3]), from_millis(times[len(times) // 2])
    printed = lines(run_till("replay", "order.events", "--from", start.isoformat(), "--to", end.isoformat()))
    wanted = {(r.partition, r.offset) for r in everything if start <= from_millis(r.timestamp) <= end}
    assert {(line["partition"], line["offset"]) for line in printed} == wanted
    assert 0 < len(wanted) < len(everything)


def test_personal_data_stays_sealed(run_till: RunTill) -> None:
    [line, *_] = lines(run_till("replay", "cart.events", "--where", "type == 'CartCheckedOut'"))
    assert "Lane" not in json.dumps(line)
    assert len(line["data"]["recipient"]) > 40


def test_a_slice_goes_byte_for_byte_into_a_topic_of_its_own(run_till: RunTill, shop: Settings, into: str) -> None:
    where = "type in ['OrderConfirmed', 'OrderCancelled']"
    ran = run_till("replay", "order.events", "--where", where, "--into", into, "--json")
    assert ran.code == 0, ran.err
    source = {(record.partition, record.offset): record for record in read_topic(shop, "order.events")}
    copied = read_topic(shop, into)
    assert len(copied) == ran.document["messages"] > 0
    for record in copied:
        origin = source[int(record.header("replay_partition")), int(record.header("replay_offset"))]
        own = tuple(header for header in record.headers if not header[0].startswith("replay_"))
        assert (record.partition, record.key, record.value, own, record.timestamp) == (
            origin.partition,
            *origin.content,
        )
        assert record.header("replay_topic") == "order.events"
        assert record.header("ce_type") in where

    again = run_till("replay", "order.events", "--into", into)
    assert again.code == 2
    assert "is not empty" in again.err
    assert len(read_topic(shop, into)) == len(copied)


def test_a_message_that_cannot_be_decoded_is_in_the_slice_with_the_reason(run_till: RunTill, shop: Settings) -> None:
    send(shop, "fraud.alerts", [Record(0, 0, b"key", b"garbage", (), 1_700_000_000_000)])
    [line] = lines(
        run_till("replay", "fraud.alerts", "--to", str(from_millis(1_700_000_000_000) + timedelta(seconds=1)))
    )
    assert line["data"] is None
    assert "not in the wire format" in line["undecodable"]
    assert line["key"] == "key"


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["nothing.events"], "There is no topic nothing.events."),
        (["cart.events", "--into", "stock.events"], "is a topic of the shop"),
        (["cart.events", "--where", "type ="], "--where: It cannot be read"),
        (["cart.events", "--where", "typ == 'ItemAdded'"], "There is no field 'typ'."),
        (["cart.events", "--where", "open('/etc/passwd')"], "is not supported"),
        (["cart.events", "--from", "-1m", "--to", "-5m"], "ends before it begins"),
    ],
)
def test_bad_usage_of_replay_gives_a_reason_and_changes_nothing(
    run_till: RunTill, shop: Settings, arguments: list[str], message: str
) -> None:
    before = read_names(shop)
    ran = run_till("replay", *arguments)
    assert ran.code == 2
    assert message in " ".join(ran.err.split())
    assert ran.out == ""
    assert read_names(shop) == before
