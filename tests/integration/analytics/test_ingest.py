"""The ingest: every message in bronze, every valid event once in silver, every invalid message in quarantine."""

import json
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import timedelta
from typing import Any

import pytest
from pyspark.sql import SparkSession
from pyspark.testing import assertDataFrameEqual
from uuid_utils import uuid7

from analytics.catalog import TOPICS
from analytics.ingest.retry import retry_quarantine
from analytics.ingest.silver import silver_columns, silver_rows
from analytics.ingest.stream import ingest_available
from analytics.ingest.writer_schemas import load_writer_schemas
from analytics.lake import Lake
from analytics.log.commits import IngestCommit
from analytics.log.offsets import covers
from analytics.log.progress import last_ingested
from infra.settings import Settings
from services.cart import events as cart
from shared.errors import OperatorError
from shared.schemas.codec import MAGIC, PREFIX
from shared.schemas.contract.event_schemas import load_schemas
from tests.golden import archive
from tests.integration.analytics.conftest import NewLake
from tests.integration.shared.topics import Record, read_topic, send
from tests.roll import NOON, Press, ShopEvent, event_id, numbered, shopping

pytestmark = pytest.mark.timeout(600)


UNKNOWN = 900_000


def rows(lake: Lake, name: str, **filters: Any) -> list[dict[str, Any]]:
    """Reads a table with delta-rs: other readers see what Spark wrote."""
    wanted = [(column, "=", value) for column, value in filters.items()]
    found: list[dict[str, Any]] = lake.snapshot(name).to_pyarrow_table(filters=wanted or None).to_pylist()
    return found


@dataclass(frozen=True)
class Trouble:
    """The events and invalid messages of one batch."""

    lake: Lake
    good: list[ShopEvent]
    twice: ShopEvent
    contradicted: ShopEvent
    late: ShopEvent
    ahead: ShopEvent
    poison: dict[str, str]
    """The reason that quarantine should give, by event id."""
    golden: dict[str, Any]
    """Events of all released schemas, by event id."""


def cart_opened(at: Any = NOON) -> ShopEvent:
    [shop_event] = numbered([(at, f"cart:{uuid7()}", cart.CartOpened("customer-1", 0))])
    return shop_event


def poisoned(press: Press, change: Callable[[bytes], bytes | None]) -> tuple[str, Record]:
    shop_event = cart_opened()
    record = press.record(shop_event)
    return shop_event.event_id, record._replace(value=change(record.value or b""))


def headed(press: Press, header: str, value: bytes | None) -> tuple[str, Record]:
    shop_event = cart_opened()
    record = press.record(shop_event)
    others = tuple(h for h in record.headers if h[0] != header)
    return shop_event.event_id, record._replace(headers=(*others, (header, value)) if value else others)


def framed(schema_id: int, body: bytes) -> bytes:
    return PREFIX.pack(MAGIC, schema_id) + body


@pytest.fixture(scope="module")
def trouble(spark: SparkSession, stack: Settings, press: Press, new_lake: NewLake) -> Trouble:
    good = shopping(8)
    twice, contradicted = cart_opened(), cart_opened()
    late = replace(cart_opened(NOON), kafka_time=NOON + timedelta(days=1))
    ahead = replace(cart_opened(NOON + timedelta(hours=3)), kafka_time=NOON)
    order_placed = next(press.record(shop_event) for shop_event in good if shop_event.topic == "order.events")
    kinds = [
        ("it has no value", poisoned(press, lambda _: None)),
        ("not in the wire format", poisoned(press, lambda _: b"hello")),
        ("not in the wire format", poisoned(press, lambda _: b"")),
        (f"the registry knows no schema with id {UNKNOWN}", poisoned(press, lambda v: framed(UNKNOWN, v[5:]))),
        ("a tillroll.order.OrderPlaced has no place in cart.events", poisoned(press, lambda _: order_placed.value)),
        ("not a tillroll.cart.CartOpened: its bytes are", poisoned(press, lambda v: v[:-2])),
        ("bytes are left over after a tillroll.cart.CartOpened", poisoned(press, lambda v: v + b"!")),
        ("the header ce_subject is missing", headed(press, "ce_subject", None)),
        ("the header ce_time makes no sense: soon", headed(press, "ce_time", b"soon")),
    ]
    golden = [g for g in archive(load_schemas()) if g.schema.topic in TOPICS]
    tomes = [(event_id(NOON), g) for g in golden]
    press.send([*good, twice, contradicted, late, ahead])
    press.send([twice])
    other = press.record(replace(contradicted, event=cart.CartOpened("customer-2", 0)))
    send(stack, "cart.events", [other, *(record for _, (_, record) in kinds)])
    for n, (its_id, one) in enumerate(tomes):
        base = press.record(replace(cart_opened(), event_id=its_id))
        written = press.ids[f"{one.schema.record}.v{one.schema.version}"]
        value = framed(written, one.body)
        send(stack, one.schema.topic, [base._replace(value=value, partition=n % 6)])
    lake = new_lake()
    ingest_available(lake)
    return Trouble(
        lake,
        good,
        twice,
        contradicted,
        late,
        ahead,
        {its_id: why for why, (its_id, _) in kinds},
        dict(tomes),
    )


def test_bronze_has_every_message_as_it_was_sent(trouble: Trouble, stack: Settings) -> None:
    records = {("cart.events", r.partition, r.offset): r for r in read_topic(stack, "cart.events")}
    found = {
        (r["topic"], r["partition"], r["offset"]): r for r in rows(trouble.lake, "bronze.events", topic="cart.events")
    }
    assert found.keys() == records.keys()
    for place, record in records.items():
        row = found[place]
        headers = tuple((h["key"], h["value"]) for h in row["headers"] or [])
        assert (row["key"], row["value"], headers) == ((record.key or b"").decode(), record.value, record.headers)
        assert row["kafka_time"].timestamp() * 1000 == record.timestamp


def test_silver_has_every_event_once_with_its_envelope(trouble: Trouble) -> None:
    found = {table: rows(trouble.lake, f"silver.{table}") for table in TOPICS.values()}
    by_id = {row["event_id"]: row for table in found.values() for row in table}
    assert sum(len(table) for table in found.values()) == len(by_id), "an event is there twice"
    for shop_event in [*trouble.good, trouble.twice, trouble.contradicted, trouble.late, trouble.ahead]:
        row = by_id[shop_event.event_id]
        assert (row["event_type"], row["stream_id"], row["stream_version"], row["event_time"], row["topic"]) == (
            type(shop_event.event).__name__,
            shop_event.stream_id,
            shop_event.version,
            shop_event.at,
            shop_event.topic,
        )
        assert (row["correlation_id"], row["actor"]) == ("request-1", "customer:ann")
        filled = [column for column, value in row.items() if isinstance(value, dict)]
        assert len(filled) == 1, "one type, one column"


def test_an_event_is_upcast_to_the_newest_version_whichever_wrote_it(trouble: Trouble) -> None:
    for table in TOPICS.values():
        for row in rows(trouble.lake, f"silver.{table}"):
            if golden := trouble.golden.get(row["event_id"]):
                [value] = [value for value in row.values() if isinstance(value, dict)]
                assert (row["event_type"], value) == (golden.record.rpartition(".")[2], golden.value)


def test_invalid_messages_are_in_quarantine_with_the_reason_in_words(trouble: Trouble) -> None:
    silver = {row["event_id"] for row in rows(trouble.lake, "silver.cart_events")}
    reasons = {row["event_id"]: row["reason"] for row in rows(trouble.lake, "silver.quarantine")}
    for its_id, reason in trouble.poison.items():
        assert its_id not in silver
        assert reasons[its_id].startswith(reason)


def test_a_duplicate_is_dropped_and_a_contradiction_goes_to_quarantine(trouble: Trouble) -> None:
    kept = {row["event_id"]: row for row in rows(trouble.lake, "silver.cart_events")}
    rejected = rows(trouble.lake, "silver.quarantine")
    assert not [row for row in rejected if row["event_id"] == trouble.twice.event_id]
    [row] = [row for row in rejected if row["event_id"] == trouble.contradicted.event_id]
    first = kept[trouble.contradicted.event_id]
    assert row["reason"] == (
        f"it contradicts the event at cart.events/{first['partition']}/{first['offset']}: "
        "the same id, and not the same bytes"
    )
    assert first["cart_opened"]["customer_id"] == "customer-1"


def test_every_table_of_a_batch_records_the_same_offsets(trouble: Trouble, stack: Settings) -> None:
    bronze = last_ingested(trouble.lake)
    assert bronze
    ends = {str(p): n for p, n in Counter(r.partition for r in read_topic(stack, "cart.events")).items()}
    assert bronze.offsets["cart.events"] == {str(p): 0 for p in range(6)} | ends
    for table in (*TOPICS.values(), "quarantine"):
        assert last_ingested(trouble.lake, f"silver.{table}") == bronze
    assert covers(bronze.offsets, {"cart.events": ends})
    assert not covers(bronze.offsets, {"cart.events": {"0": ends.get("0", 0) + 1}})


def test_silver_recomputed_from_bronze_has_the_same_rows(trouble: Trouble, spark: SparkSession) -> None:
    writers = load_writer_schemas(trouble.lake)
    bronze = trouble.lake.read("bronze.events")
    for topic, table in TOPICS.items():
        again = silver_rows(bronze, table, writers)
        assert again.columns == silver_columns(topic, writers)
        streamed = trouble.lake.read(f"silver.{table}")
        assert again.schema.simpleString() == streamed.schema.simpleString()
        assertDataFrameEqual(again, streamed, ignoreNullable=True)


def test_a_message_in_quarantine_moves_to_silver_once_its_schema_is_known(
    trouble: Trouble, spark: SparkSession, press: Press
) -> None:
    """Stores the schema in the lake, as if the registry had it."""
    lake = trouble.lake
    [its_id] = [i for i, why in trouble.poison.items() if str(UNKNOWN) in why]
    text = json.dumps(load_schemas().newest("tillroll.cart.CartOpened").definition)
    spark.createDataFrame([(UNKNOWN, text)], "schema_id int, text string").write.format("delta").mode("append").save(
        lake.path("bronze.schemas")
    )
    before = len(rows(lake, "silver.quarantine"))
    assert retry_quarantine(lake) == 1
    assert [r["event_type"] for r in rows(lake, "silver.cart_events") if r["event_id"] == its_id] == ["CartOpened"]
    assert len(rows(lake, "silver.quarantine")) == before - 1
    assert retry_quarantine(lake) == 0


def test_a_second_run_reads_only_new_messages_and_needs_no_registry(
    trouble: Trouble, spark: SparkSession, press: Press
) -> None:
    settings = trouble.lake.settings.model_copy(update={"registry_url": "http://127.0.0.1:9/nobody"})
    offline = Lake(spark, settings)
    shop_event = cart_opened()
    press.send([shop_event, trouble.twice])
    before = last_ingested(offline)
    ingest_available(offline)
    after = last_ingested(offline)
    assert before
    assert after
    assert (after.generation, after.batch) == (before.generation, before.batch + 1)
    ids = Counter(row["event_id"] for row in rows(offline, "silver.cart_events"))
    assert ids[shop_event.event_id] == 1
    assert ids[trouble.twice.event_id] == 1, "the same event was in an earlier batch"
    newest = next(offline.log("silver.cart_events").versions()).commit
    assert isinstance(newest, IngestCommit)
    assert newest.batch == after.batch


def test_an_unknown_schema_stops_the_ingest_while_the_registry_is_down(
    trouble: Trouble, spark: SparkSession, press: Press, stack: Settings
) -> None:
    """Otherwise an outage of the registry would send valid events to quarantine."""
    settings = trouble.lake.settings.model_copy(update={"registry_url": "http://127.0.0.1:9/nobody"})
    offline = Lake(spark, settings)
    _, record = poisoned(press, lambda v: framed(UNKNOWN + 1, v[5:]))
    send(stack, "cart.events", [record])
    with pytest.raises(OperatorError, match="schema registry does not answer"):
        ingest_available(offline)
    ingest_available(trouble.lake)
    [row] = [r for r in rows(trouble.lake, "silver.quarantine") if r["schema_id"] == UNKNOWN + 1]
    assert row["reason"] == f"the registry knows no schema with id {UNKNOWN + 1}"
