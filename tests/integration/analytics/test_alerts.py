"""The stream of alerts, from real Kafka to real Kafka: it says what gold says, whatever happens to it on the way."""

import shutil
from collections.abc import Iterable, Iterator
from random import Random
from typing import Any

import pytest
from confluent_kafka.schema_registry import SchemaRegistryClient
from confluent_kafka.schema_registry.avro import AvroDeserializer
from confluent_kafka.serialization import MessageField, SerializationContext
from pyspark.sql import SparkSession
from uuid_utils import uuid7

from analytics.fraud.alerts import as_published
from analytics.fraud.stream import AlertStream, checkpoint_of
from analytics.gold.fraud import FRAUD
from analytics.ingest.bronze import bronze_rows
from analytics.ingest.silver import silver_rows
from analytics.ingest.writers import Writers
from analytics.kafka import source_options
from shared.errors import OperatorError
from shared.schemas import load_schemas
from shared.settings import Settings
from tests.integration.kit import Record, read_topic, send
from tests.roll import Press, Told, numbered
from tests.unit.lake.payments import Happened, Payment, failed

pytestmark = [pytest.mark.slow, pytest.mark.timeout(600)]

RUN = uuid7().hex[-8:]
[_, ALERTS] = FRAUD


class Dies(Exception):
    pass


@pytest.fixture(scope="module")
def lake(stack: Settings, tmp_path_factory: pytest.TempPathFactory) -> Settings:
    """Its tables are not wanted: only where the stream keeps its memory."""
    return stack.model_copy(update={"lake": str(tmp_path_factory.mktemp("alerts"))})


def history() -> list[Told]:
    """Of a few people in half an hour, most of it suspicious to some rule."""
    return numbered(_history(Random(RUN)))


def _history(chance: Random) -> Iterator[Happened]:
    for n in range(90):
        token = chance.choice(["tok_ok", f"tok_ring_{RUN}", f"tok_{n}_{RUN}"])
        cents = chance.choice([100, 120, 2000])
        payment = Payment(f"{RUN}-{n}", f"{RUN}-{chance.randrange(5)}", cents, token)
        at = chance.uniform(0, 1800)
        yield payment.asked(at)
        yield payment.paid(at + 60 * chance.random()) if chance.random() < 0.4 else payment.declined(at + 1)


def published(settings: Settings) -> list[Record]:
    """Of this run's people, as another client reads them."""
    with SchemaRegistryClient({"url": settings.registry_url}) as client:
        read = AvroDeserializer(client)
        records = read_topic(settings, "fraud.alerts")
        return [
            record
            for record in records
            if RUN in _said(read, record)["customer_id"] + _said(read, record)["payment_token"]
        ]


def said(settings: Settings) -> list[dict[str, Any]]:
    with SchemaRegistryClient({"url": settings.registry_url}) as client:
        read = AvroDeserializer(client)
        return [_said(read, record) for record in published(settings)]


def _said(read: AvroDeserializer, record: Record) -> dict[str, Any]:
    fields = read(record.value, SerializationContext("fraud.alerts", MessageField.VALUE))
    assert isinstance(fields, dict)
    return fields


def in_gold(spark: SparkSession, settings: Settings, press: Press) -> list[dict[str, Any]]:
    """Those of gold.fraud_alerts, computed from all that is in the topic by now."""
    topic = spark.read.format("kafka").options(**source_options(settings)).option("subscribe", "payment.events")
    bronze = bronze_rows(topic.option("includeHeaders", "true").load())
    texts = {press.ids[f"{s.record}.v{s.version}"]: s.text for s in load_schemas().all}
    payments = silver_rows(bronze, "payment_events", Writers(texts, load_schemas()))
    found = as_published(ALERTS.compute({"payment_events": payments})).where(
        f"contains(customer_id || payment_token, '{RUN}')"
    )
    return [row.asDict() for row in found.collect()]


def by_id(alerts: Iterable[dict[str, Any]]) -> dict[str, dict[str, Any]]:
    return {alert["alert_id"]: alert for alert in alerts}


def test_at_every_cut_what_was_sent_is_what_gold_has(spark: SparkSession, lake: Settings, press: Press) -> None:
    """Late ones come before early ones, some come twice, and amid them it dies and loses its memory."""
    told = Random(RUN).sample(history(), 180)

    press.send(told[:90])
    AlertStream(spark, lake).bring_up_to_date()
    first = by_id(said(lake))
    assert first
    assert first == by_id(in_gold(spark, lake, press))

    press.send([*told[90:], *told[60:100]])
    dying = AlertStream(spark, lake)
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr("analytics.fraud.outbox.crashpoint", _dies_at("alerts sent, not committed"))
        with pytest.raises(OperatorError, match="has stopped"):
            dying.bring_up_to_date()
    AlertStream(spark, lake).bring_up_to_date()
    sent = said(lake)
    assert by_id(sent) == by_id(in_gold(spark, lake, press))
    assert first.items() < by_id(sent).items(), "what was said stays said"
    assert len({reason for alert in sent for reason in alert["reasons"]}) > 4

    shutil.rmtree(checkpoint_of(lake, dying.rules))
    forgetful = AlertStream(spark, lake)
    forgetful.bring_up_to_date()
    assert len(said(lake)) == len(by_id(sent)), "each was sent once, although it died, and forgot"


def _dies_at(here: str) -> Any:
    def crashpoint(point: str) -> None:
        if point == here:
            raise Dies(point)

    return crashpoint


def test_an_alert_is_an_event_like_any_other(spark: SparkSession, lake: Settings, press: Press) -> None:
    press.send(numbered(it for n in range(4) for it in failed(f"like-{RUN}-{n}", f"like-{RUN}", n)))
    AlertStream(spark, lake).bring_up_to_date()
    [record, _] = [record for record in published(lake) if b"like-" in (record.value or b"")]
    alert_id = record.header("ce_id")
    assert record.key == f"alert:{alert_id}".encode()
    assert record.header("ce_subject") == f"alert:{alert_id}"
    assert (record.header("ce_type"), record.header("ce_streamversion")) == ("FraudAlert", "1")
    assert (record.header("ce_source"), record.header("ce_actor")) == ("/till-roll/lake", "lake")


def test_what_nobody_can_read_does_not_stop_it(spark: SparkSession, lake: Settings, press: Press) -> None:
    """Silver has it in quarantine; the payments behind it are judged."""
    poison = [b"", b"\x01not ours", b"\x00\x7f\xff\xff\xff" + b"x" * 40, b"\x00\x00"]
    send(lake, "payment.events", [Record(0, 0, b"payment:x", value, (), 0) for value in poison])
    press.send(numbered(it for n in range(4) for it in failed(f"after-{RUN}-{n}", f"after-{RUN}", n)))
    AlertStream(spark, lake).bring_up_to_date()
    assert {alert["customer_id"] for alert in said(lake)} >= {f"after-{RUN}"}
