"""The event classes of the catalog service agree with their Avro schemas."""

from dataclasses import asdict
from typing import get_args

import pytest

from schemas.upcasters import UPCASTERS
from services.catalog.events import Event, PriceChanged, ProductRelisted, ProductRenamed, StockCounted
from services.catalog.product import Product
from services.common.money import Money
from tests.unit.services.agreement import disagreements, newest, there_and_back, undocumented
from tests.unit.services.catalog.words import (
    FIRST,
    LISTED,
    MUG,
    PRICE,
    WITHDRAWN,
    rejected,
    released,
    reserved,
    returned,
    sold,
)

SCHEMAS = {name: schema for name, schema in newest("catalog").items() if name not in UPCASTERS}
CLASSES: dict[str, type] = {f"tillroll.stock.{event.__name__}": event for event in get_args(Event)}
CLASSES["tillroll.catalog.Product"] = Product
NAMES = {cls: name for name, cls in CLASSES.items()}
EXAMPLES: list[Event | Product] = [
    LISTED,
    ProductRenamed(MUG, "Enamel Mug", "Becher, weiß"),
    PriceChanged(MUG, PRICE, Money(10**9, "JPY")),
    StockCounted(MUG, -(10**9), 0),
    StockCounted(MUG, 1, None),
    WITHDRAWN,
    ProductRelisted(MUG),
    reserved(FIRST, 99),
    rejected(FIRST, 99, 10**9),
    released(FIRST, 0),
    sold(FIRST, 1),
    returned(FIRST, 1),
    Product(MUG, "Enamel Mug", PRICE, True, 10**12),
]


def test_every_class_has_a_schema_and_every_schema_a_class() -> None:
    assert SCHEMAS.keys() == CLASSES.keys()


@pytest.mark.parametrize("name", CLASSES)
def test_a_class_has_the_fields_of_its_schema(name: str) -> None:
    assert disagreements(CLASSES[name], SCHEMAS[name]) == []


@pytest.mark.parametrize("name", SCHEMAS)
def test_every_record_and_field_says_what_it_means(name: str) -> None:
    assert undocumented(SCHEMAS[name]) == []


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda example: type(example).__name__)
def test_a_product_document_comes_back_from_its_bytes(example: Event | Product) -> None:
    assert there_and_back(asdict(example), SCHEMAS[NAMES[type(example)]]) == asdict(example)


def test_there_is_an_example_of_every_class() -> None:
    assert {type(example) for example in EXAMPLES} == set(CLASSES.values())
