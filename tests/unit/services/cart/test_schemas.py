"""The event classes of the cart service agree with their Avro schemas."""

from dataclasses import asdict
from typing import get_args

import pytest

from services.cart.events import Event, ItemRemoved, Line, QuantitySet
from services.common.money import Money
from tests.unit.services.agreement import disagreements, newest, there_and_back, undocumented
from tests.unit.services.cart.words import ABANDONED, CHECKED_OUT, LATER, MUG, MUG_ADDED, OPENED, euro

SCHEMAS = newest("cart")
CLASSES: dict[str, type] = {f"tillroll.cart.{event.__name__}": event for event in get_args(Event)}
EXAMPLES: list[Event] = [
    OPENED,
    MUG_ADDED,
    QuantitySet(MUG, 5, euro(1290), LATER),
    ItemRemoved(MUG, LATER, 2),
    CHECKED_OUT,
    ABANDONED,
]


def test_every_event_has_a_schema_and_every_schema_an_event() -> None:
    assert SCHEMAS.keys() == CLASSES.keys()


@pytest.mark.parametrize("name", CLASSES)
def test_an_event_has_the_fields_of_its_schema(name: str) -> None:
    assert disagreements(CLASSES[name], SCHEMAS[name]) == []


@pytest.mark.parametrize("shared_type", [Money, Line])
def test_a_shared_type_has_the_fields_of_its_schema(shared_type: type) -> None:
    assert disagreements(shared_type, newest("shared")[f"tillroll.{shared_type.__name__}"]) == []


@pytest.mark.parametrize("schema", [*SCHEMAS.values(), *newest("shared").values()], ids=lambda s: s["name"])
def test_every_record_and_field_says_what_it_means(schema: dict[str, object]) -> None:
    assert undocumented(schema) == []


@pytest.mark.parametrize("event", EXAMPLES, ids=lambda event: type(event).__name__)
def test_an_event_comes_back_from_its_bytes(event: Event) -> None:
    record = asdict(event)
    if "lines" in record:
        record["lines"] = list(record["lines"])  # an Avro array is read as a list
    assert there_and_back(record, SCHEMAS[f"tillroll.cart.{type(event).__name__}"]) == record


def test_the_examples_are_all_events() -> None:
    assert {type(event) for event in EXAMPLES} == set(CLASSES.values())
