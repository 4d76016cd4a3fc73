"""The stream of alerts from real Kafka to real Kafka sends what gold has, whatever happens to it on the way."""

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
from analytics.incremental.scope import Silver
from analytics.ingest.bronze import bronze_rows
from analytics.ingest.silver import silver_rows
from analytics.ingest.writer_schemas import WriterSchemas
from analytics.lake import Lake
from analytics.models.marts.fraud_alerts import fraud_alerts
from analytics.runtime.kafka_options import from_kafka
from infra.settings import Settings
from shared.errors import OperatorError
from shared.schemas.contract.event_schemas import load_schemas
from tests.integration.shared.topics import Record, read_topic, send
from tests.roll import Press, ShopEvent, numbered
from tests.unit.analytics.fraud.payments import Happened, Payment, failed

pytestmark = [pytest.mark.slow, pytest.mark.timeout(600)]

RUN = uuid7().hex[-8:]


class Dies(Exception):
    pass


@pytest.fixture(scope="module")
def lake(stack: Settings, spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Lake:
    """A lake without tables: only the checkpoint of the stream is in it."""
    return Lake(spark, stack.model_copy(update={"lake": str(tmp_path_factory.mktemp("alerts"))}))


def history() -> list[ShopEvent]:
    """Payments of a few people in half an hour, most of them suspicious by some rule."""
    return numbered(_history(Random(RUN)))


def _history(chance: Random) -> Iterator[Happened]:
    for n in range(90):
        token = chance.choice(["tok_ok", f"tok_ring_{RUN}", f"tok_{n}_{RUN}"])
        cents = chance.choice([100, 120, 2000])
        payment = Payment(f"{RUN}-{n}", f"{RUN}-{chance.randrange(5)}", cents, token)
        at = chance.uniform(0, 1800)
        yield payment.asked(at)
        yield payment.paid(at + 60 * chance.random()) if chance.random() < 0.4 else payment.declined(at + 1)


def published(stack: Settings) -> list[Record]:
    """Alerts about this run's people, as another client reads them."""
    with SchemaRegistryClient({"url": stack.registry_url}) as client:
        read = AvroDeserializer(client)
        records = read_topic(stack, "fraud.alerts")
        return [
            record
            for record in records
            if RUN in _fields(read, record)["customer_id"] + _fields(read, record)["payment_token"]
        ]


def sent_alerts(stack: Settings) -> list[dict[str, Any]]:
    with SchemaRegistryClient({"url": stack.registry_url}) as client:
        read = AvroDeserializer(client)
        return [_fields(read, record) for record in published(stack)]


def _fields(read: AvroDeserializer, record: Record) -> dict[str, Any]:
    fields = read(record.value, SerializationContext("fraud.alerts", MessageField.VALUE))
    assert isinstance(fields, dict)
    return fields


def in_gold(lake: Lake, press: Press) -> list[dict[str, Any]]:
    """Alerts as gold.fraud_alerts has them, computed from all that is in the topic by now."""
    bronze = bronze_rows(from_kafka(lake.spark.read, lake.settings, ["payment.events"]).load())
    texts = {press.ids[f"{s.record}.v{s.version}"]: s.text for s in load_schemas().all}
    payments = silver_rows(bronze, "payment_events", WriterSchemas(texts, load_schemas()))
    inputs = fraud_alerts.scope.inputs(fraud_alerts.scope.stage(Silver({"payment_events": payments})))
    ours = f"contains(customer_id || payment_token, '{RUN}')"
    found = as_published(fraud_alerts.compute(inputs)).where(ours)
    return [row.asDict() for row in found.collect()]


def by_id(alerts: Iterable[dict[str, Any]]) -> dict[str, dict[str, Any]]:
    return {alert["alert_id"]: alert for alert in alerts}


def test_at_every_cut_the_alerts_that_were_sent_are_those_of_gold(stack: Settings, lake: Lake, press: Press) -> None:
    """Late events come before early ones, some come twice, and meanwhile the stream dies and loses its checkpoint."""
    sample = Random(RUN).sample(history(), 180)

    press.send(sample[:90])
    AlertStream(lake).judge_available()
    first = by_id(sent_alerts(stack))
    assert first
    assert first == by_id(in_gold(lake, press))

    press.send([*sample[90:], *sample[60:100]])
    dying = AlertStream(lake)
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr("analytics.fraud.sender.crashpoint", _dies_at("alerts sent, not committed"))
        with pytest.raises(OperatorError, match="has stopped"):
            dying.judge_available()
    AlertStream(lake).judge_available()
    sent = sent_alerts(stack)
    assert by_id(sent) == by_id(in_gold(lake, press))
    assert first.items() < by_id(sent).items(), "no alert is taken back"
    assert len({reason for alert in sent for reason in alert["reasons"]}) > 4

    shutil.rmtree(checkpoint_of(lake, dying.rules))
    forgetful = AlertStream(lake)
    forgetful.judge_available()
    assert len(sent_alerts(stack)) == len(by_id(sent)), "each was sent once, although the stream died and forgot"


def _dies_at(here: str) -> Any:
    def crashpoint(point: str) -> None:
        if point == here:
            raise Dies(point)

    return crashpoint


def test_an_alert_is_an_event_like_any_other(stack: Settings, lake: Lake, press: Press) -> None:
    press.send(numbered(it for n in range(4) for it in failed(f"like-{RUN}-{n}", f"like-{RUN}", n)))
    AlertStream(lake).judge_available()
    [record, _] = [record for record in published(stack) if b"like-" in (record.value or b"")]
    alert_id = record.header("ce_id")
    assert record.key == f"alert:{alert_id}".encode()
    assert record.header("ce_subject") == f"alert:{alert_id}"
    assert (record.header("ce_type"), record.header("ce_streamversion")) == ("FraudAlert", "1")
    assert (record.header("ce_source"), record.header("ce_actor")) == ("/till-roll/lake", "lake")


def test_messages_that_nobody_can_read_do_not_stop_the_stream(stack: Settings, lake: Lake, press: Press) -> None:
    """Silver has them in quarantine; the payments behind them are judged."""
    poison = [b"", b"\x01not ours", b"\x00\x7f\xff\xff\xff" + b"x" * 40, b"\x00\x00"]
    send(stack, "payment.events", [Record(0, 0, b"payment:x", value, (), 0) for value in poison])
    press.send(numbered(it for n in range(4) for it in failed(f"after-{RUN}-{n}", f"after-{RUN}", n)))
    AlertStream(lake).judge_available()
    assert {alert["customer_id"] for alert in sent_alerts(stack)} >= {f"after-{RUN}"}
