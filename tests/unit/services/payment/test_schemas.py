"""The event classes of the payment service agree with their Avro schemas."""

from typing import Any, get_args

import pytest

from services.payment.events import Event
from services.payment.velocity import Velocity, record_alert
from shared.schemas.records import from_record, to_record
from tests.unit.services.agreement import disagreements, newest, there_and_back, undocumented
from tests.unit.services.payment.words import (
    ANN,
    APPROVED,
    AUTHORIZED,
    AUTHORIZING,
    CANCELLED,
    CAPTURE_DECLINED,
    CAPTURED,
    CAPTURING,
    HELD,
    REFUNDED,
    REFUNDING,
    VOIDED,
    VOIDING,
    declined,
)

SCHEMAS = newest("payment")
CLASSES: dict[str, type] = {f"tillroll.payment.{event.__name__}": event for event in get_args(Event)}
EXAMPLES: list[Event] = [
    HELD,
    APPROVED,
    AUTHORIZING,
    AUTHORIZED,
    declined("provider", "no money", "none at all"),
    CANCELLED,
    CAPTURING,
    CAPTURED,
    CAPTURE_DECLINED,
    VOIDING,
    VOIDED,
    REFUNDING,
    REFUNDED,
]
ALERT: dict[str, Any] = {
    "alert_id": "c5d2a0de-0000-5000-8000-000000000001",
    "customer_id": ANN,
    "payment_token": "",
    "score": 80,
    "reasons": ["7 declined payments in a minute"],
    "window_start": 1_767_268_800_000,
    "window_end": 1_767_268_860_000,
    "at": 1_767_268_861_000,
}


def test_every_event_has_a_schema_and_every_schema_an_event() -> None:
    assert SCHEMAS.keys() == CLASSES.keys()


@pytest.mark.parametrize("name", CLASSES)
def test_an_event_has_the_fields_of_its_schema(name: str) -> None:
    assert disagreements(CLASSES[name], SCHEMAS[name]) == []


@pytest.mark.parametrize("schema", [*SCHEMAS.values(), *newest("fraud").values()], ids=lambda s: s["name"])
def test_every_record_and_field_says_what_it_means(schema: dict[str, object]) -> None:
    assert undocumented(schema) == []


@pytest.mark.parametrize("event", EXAMPLES, ids=lambda event: type(event).__name__)
def test_an_event_comes_back_from_its_bytes(event: Event) -> None:
    record = there_and_back(to_record(type(event))(event), SCHEMAS[f"tillroll.payment.{type(event).__name__}"])
    assert from_record(type(event))(record) == event


def test_the_examples_are_all_events() -> None:
    assert {type(event) for event in EXAMPLES} == set(CLASSES.values())


def test_an_alert_of_the_lake_is_understood() -> None:
    velocity = Velocity()
    record_alert(velocity, there_and_back(ALERT, newest("fraud")["tillroll.fraud.FraudAlert"]))
    assert [alert.score for alert in velocity.alerts[ANN]] == [80]
