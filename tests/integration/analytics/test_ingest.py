"""From the topics to bronze and silver: everything, once, decoded by what wrote it; and what cannot be, set aside."""

import json
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import timedelta
from typing import Any

import pytest
from deltalake import DeltaTable
from pyspark.sql import SparkSession
from uuid_utils import uuid7

from analytics.commits import covers, ingested, newest, versions
from analytics.ingest.retry import retry_quarantine
from analytics.ingest.silver import silver_columns, silver_rows
from analytics.ingest.stream import ingest_available
from analytics.ingest.writers import known
from analytics.paths import path_of
from analytics.tables import TOPICS, read
from services.cart import events as cart
from shared.codec import MAGIC, PREFIX
from shared.errors import OperatorError
from shared.schemas import load_schemas
from shared.settings import Settings
from tests.golden import archive
from tests.integration.kit import Record, read_topic, send
from tests.integration.lake.conftest import NewLake
from tests.roll import NOON, Press, Told, event_id, numbered, shopping

pytestmark = pytest.mark.timeout(600)


UNKNOWN = 900_000


def rows(settings: Settings, name: str, **filters: Any) -> list[dict[str, Any]]:
    """Read by delta-rs: others see what Spark wrote."""
    wanted = [(column, "=", value) for column, value in filters.items()]
    found: list[dict[str, Any]] = (
        DeltaTable(path_of(settings, name)).to_pyarrow_table(filters=wanted or None).to_pylist()
    )
    return found


@dataclass(frozen=True)
class Trouble:
    """What is in the cart's topic beside good events, all in one batch."""

    settings: Settings
    good: list[Told]
    twice: Told
    contradicted: Told
    late: Told
    ahead: Told
    poison: dict[str, str]
    """By event id, the reason that quarantine should give."""
    golden: dict[str, Any]
    """By event id, what the archive says that it is today."""


def cart_opened(at: Any = NOON) -> Told:
    [told] = numbered([(at, f"cart:{uuid7()}", cart.CartOpened("customer-1", 0))])
    return told


def poisoned(press: Press, change: Callable[[bytes], bytes | None]) -> tuple[str, Record]:
    told = cart_opened()
    record = press.record(told)
    return told.event_id, record._replace(value=change(record.value or b""))


def headed(press: Press, header: str, value: bytes | None) -> tuple[str, Record]:
    told = cart_opened()
    record = press.record(told)
    others = tuple(h for h in record.headers if h[0] != header)
    return told.event_id, record._replace(headers=(*others, (header, value)) if value else others)


def framed(schema_id: int, body: bytes) -> bytes:
    return PREFIX.pack(MAGIC, schema_id) + body


@pytest.fixture(scope="module")
def trouble(spark: SparkSession, stack: Settings, press: Press, new_lake: NewLake) -> Trouble:
    good = shopping(8)
    twice, contradicted = cart_opened(), cart_opened()
    late = replace(cart_opened(NOON), kafka_time=NOON + timedelta(days=1))
    ahead = replace(cart_opened(NOON + timedelta(hours=3)), kafka_time=NOON)
    order_placed = next(press.record(told) for told in good if told.topic == "order.events")
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
    settings = new_lake()
    ingest_available(spark, settings)
    return Trouble(
        settings,
        good,
        twice,
        contradicted,
        late,
        ahead,
        {its_id: why for why, (its_id, _) in kinds},
        dict(tomes),
    )


def test_bronze_has_every_message_as_it_came(trouble: Trouble, stack: Settings) -> None:
    records = {("cart.events", r.partition, r.offset): r for r in read_topic(stack, "cart.events")}
    found = {
        (r["topic"], r["partition"], r["offset"]): r
        for r in rows(trouble.settings, "bronze.events", topic="cart.events")
    }
    assert found.keys() == records.keys()
    for place, record in records.items():
        row = found[place]
        headers = tuple((h["key"], h["value"]) for h in row["headers"] or [])
        assert (row["key"], row["value"], headers) == ((record.key or b"").decode(), record.value, record.headers)
        assert row["kafka_time"].timestamp() * 1000 == record.timestamp


def test_silver_has_every_event_once_with_what_surrounds_it(trouble: Trouble) -> None:
    found = {table: rows(trouble.settings, f"silver.{table}") for table in TOPICS.values()}
    by_id = {row["event_id"]: row for table in found.values() for row in table}
    assert sum(len(table) for table in found.values()) == len(by_id), "an event is there twice"
    for told in [*trouble.good, trouble.twice, trouble.contradicted, trouble.late, trouble.ahead]:
        row = by_id[told.event_id]
        assert (row["event_type"], row["stream_id"], row["stream_version"], row["event_time"], row["topic"]) == (
            type(told.event).__name__,
            told.stream_id,
            told.version,
            told.at,
            told.topic,
        )
        assert (row["correlation_id"], row["actor"]) == ("request-1", "customer:ann")
        filled = [column for column, value in row.items() if isinstance(value, dict)]
        assert len(filled) == 1, "one type, one column"


def test_an_event_is_read_as_the_newest_version_whichever_wrote_it(trouble: Trouble) -> None:
    for table in TOPICS.values():
        for row in rows(trouble.settings, f"silver.{table}"):
            if golden := trouble.golden.get(row["event_id"]):
                [value] = [value for value in row.values() if isinstance(value, dict)]
                assert (row["event_type"], value) == (golden.record.rpartition(".")[2], golden.value)


def test_what_cannot_be_read_is_in_quarantine_with_the_reason_in_words(trouble: Trouble) -> None:
    silver = {row["event_id"] for row in rows(trouble.settings, "silver.cart_events")}
    reasons = {row["event_id"]: row["reason"] for row in rows(trouble.settings, "silver.quarantine")}
    for its_id, reason in trouble.poison.items():
        assert its_id not in silver
        assert reasons[its_id].startswith(reason)


def test_a_duplicate_is_dropped_and_a_contradiction_is_set_aside(trouble: Trouble) -> None:
    kept = {row["event_id"]: row for row in rows(trouble.settings, "silver.cart_events")}
    aside = rows(trouble.settings, "silver.quarantine")
    assert not [row for row in aside if row["event_id"] == trouble.twice.event_id]
    [row] = [row for row in aside if row["event_id"] == trouble.contradicted.event_id]
    first = kept[trouble.contradicted.event_id]
    assert row["reason"] == (
        f"it contradicts the event at cart.events/{first['partition']}/{first['offset']}: "
        "the same id, and not the same bytes"
    )
    assert first["cart_opened"]["customer_id"] == "customer-1"


def test_each_commit_of_a_batch_says_how_far_it_reached(trouble: Trouble, stack: Settings) -> None:
    bronze = newest(trouble.settings, "bronze.events")
    assert bronze
    assert bronze.said["query"] == "ingest"
    ends = {str(p): n for p, n in Counter(r.partition for r in read_topic(stack, "cart.events")).items()}
    assert bronze.said["offsets"]["cart.events"] == {str(p): 0 for p in range(6)} | ends
    for table in (*TOPICS.values(), "quarantine"):
        version = newest(trouble.settings, f"silver.{table}")
        assert version
        assert version.said == bronze.said
    assert covers(bronze.said["offsets"], {"cart.events": ends})
    assert not covers(bronze.said["offsets"], {"cart.events": {"0": ends.get("0", 0) + 1}})


def test_silver_can_be_computed_again_from_bronze(trouble: Trouble, spark: SparkSession) -> None:
    writers = known(spark, trouble.settings)
    bronze = read(spark, trouble.settings, "bronze.events")
    for topic, table in TOPICS.items():
        again = silver_rows(bronze, table, writers)
        assert again.columns == silver_columns(topic, writers)
        streamed = read(spark, trouble.settings, f"silver.{table}")
        assert again.schema.simpleString() == streamed.schema.simpleString()
        assert again.exceptAll(streamed).isEmpty()
        assert streamed.exceptAll(again).isEmpty()


def test_once_it_is_mended_what_was_set_aside_goes_to_silver_and_only_once(
    trouble: Trouble, spark: SparkSession, press: Press
) -> None:
    """As if the registry had known the schema all along."""
    settings = trouble.settings
    [its_id] = [i for i, why in trouble.poison.items() if str(UNKNOWN) in why]
    text = json.dumps(load_schemas().newest("tillroll.cart.CartOpened").definition)
    spark.createDataFrame([(UNKNOWN, text)], "schema_id int, text string").write.format("delta").mode("append").save(
        path_of(settings, "bronze.schemas")
    )
    before = len(rows(settings, "silver.quarantine"))
    assert retry_quarantine(spark, settings) == 1
    assert [r["event_type"] for r in rows(settings, "silver.cart_events") if r["event_id"] == its_id] == ["CartOpened"]
    assert len(rows(settings, "silver.quarantine")) == before - 1
    assert retry_quarantine(spark, settings) == 0


def test_a_second_run_takes_only_what_is_new_and_does_without_the_registry(
    trouble: Trouble, spark: SparkSession, press: Press
) -> None:
    offline = trouble.settings.model_copy(update={"registry_url": "http://127.0.0.1:9/nobody"})
    told = cart_opened()
    press.send([told, trouble.twice])
    before = ingested(offline)
    ingest_available(spark, offline)
    after = ingested(offline)
    assert before
    assert after
    assert (after.generation, after.batch) == (before.generation, before.batch + 1)
    ids = Counter(row["event_id"] for row in rows(offline, "silver.cart_events"))
    assert ids[told.event_id] == 1
    assert ids[trouble.twice.event_id] == 1, "it came before, in another batch"
    version = next(versions(offline, "silver.cart_events"))
    assert version.said["batch"] == after.batch


def test_an_unknown_schema_stops_the_ingest_while_the_registry_is_down(
    trouble: Trouble, spark: SparkSession, press: Press, stack: Settings
) -> None:
    """Else an outage of the registry would send good events to quarantine."""
    offline = trouble.settings.model_copy(update={"registry_url": "http://127.0.0.1:9/nobody"})
    _, record = poisoned(press, lambda v: framed(UNKNOWN + 1, v[5:]))
    send(stack, "cart.events", [record])
    with pytest.raises(OperatorError, match="schema registry does not answer"):
        ingest_available(spark, offline)
    ingest_available(spark, trouble.settings)
    [row] = [r for r in rows(trouble.settings, "silver.quarantine") if r["schema_id"] == UNKNOWN + 1]
    assert row["reason"] == f"the registry knows no schema with id {UNKNOWN + 1}"
