"""The event classes of the order service agree with their Avro schemas."""

from typing import get_args

import pytest

from services.order.events import Event, Line
from shared.schemas.records import from_record, to_record
from tests.unit.services.agreement import disagreements, newest, there_and_back, undocumented
from tests.unit.services.order.words import CONFIRMED, HELD, MUG_RESERVED, PLACED, REQUESTED, cancelled

SCHEMAS = newest("order")
CLASSES: dict[str, type] = {f"tillroll.order.{event.__name__}": event for event in get_args(Event)}
EXAMPLES: list[Event] = [PLACED, MUG_RESERVED, REQUESTED, HELD, CONFIRMED, cancelled("out_of_stock", payment_id="")]


def test_every_event_has_a_schema_and_every_schema_an_event() -> None:
    assert SCHEMAS.keys() == CLASSES.keys()


@pytest.mark.parametrize("name", CLASSES)
def test_an_event_has_the_fields_of_its_schema(name: str) -> None:
    assert disagreements(CLASSES[name], SCHEMAS[name]) == []


def test_a_line_has_the_fields_of_the_shared_schema() -> None:
    assert disagreements(Line, newest("shared")["tillroll.Line"]) == []


@pytest.mark.parametrize("name", SCHEMAS)
def test_every_record_and_field_says_what_it_means(name: str) -> None:
    assert undocumented(SCHEMAS[name]) == []


@pytest.mark.parametrize("event", EXAMPLES, ids=lambda event: type(event).__name__)
def test_an_event_comes_back_from_its_bytes(event: Event) -> None:
    record = there_and_back(to_record(type(event))(event), SCHEMAS[f"tillroll.order.{type(event).__name__}"])
    assert from_record(type(event))(record) == event


def test_the_examples_are_all_events() -> None:
    assert {type(event) for event in EXAMPLES} == set(CLASSES.values())
