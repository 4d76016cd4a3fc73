"""Retired events become what replaced them, step by step, and the oldest fold as they always did."""

from functools import reduce
from typing import Any

import pytest

from schemas.upcasters import UPCASTERS, Upcaster, stock_adjusted, stock_corrected
from services.catalog.decider import evolve, initial
from services.catalog.events import ProductListed, StockCounted
from shared.codec import MAGIC, PREFIX, Codec
from shared.errors import OperatorError
from shared.money import Money
from shared.schemas import load_schemas
from shared.upcasters import chain
from tests.golden import archive

LISTED = ProductListed("MUG-350", "Enamel mug", Money(1290, "EUR"), 40)


def test_an_adjustment_becomes_a_correction_without_a_reason() -> None:
    old = {"sku": "MUG-350", "delta": -6}
    assert stock_adjusted(old) == {"sku": "MUG-350", "difference": -6, "reason": "unrecorded"}
    assert old == {"sku": "MUG-350", "delta": -6}, "an upcaster leaves alone what it is given"


def test_a_correction_becomes_a_count_that_was_not_recorded() -> None:
    old = {"sku": "MUG-350", "difference": 3, "reason": "delivery"}
    assert stock_corrected(old) == {"sku": "MUG-350", "difference": 3, "counted": None}


def test_steps_are_taken_one_after_another() -> None:
    upcasters = {
        "v1": Upcaster("v2", lambda old: {"trail": [*old["trail"], "1 to 2"]}),
        "v2": Upcaster("v3", lambda old: {"trail": [*old["trail"], "2 to 3"]}),
    }
    record, upcast = chain(upcasters, "v1")
    assert record == "v3"
    assert upcast
    assert upcast({"trail": []}) == {"trail": ["1 to 2", "2 to 3"]}
    assert chain(upcasters, "v3") == ("v3", None)


def test_a_circle_is_refused_and_shown() -> None:
    def same(old: Any) -> dict[str, Any]:
        return dict(old)

    upcasters = {"a": Upcaster("b", same), "b": Upcaster("a", same)}
    with pytest.raises(OperatorError, match="a -> b -> a"):
        chain(upcasters, "a")


@pytest.mark.parametrize("record", UPCASTERS)
def test_what_is_retired_is_read_as_an_event_that_is_not(record: str) -> None:
    current, _ = chain(UPCASTERS, record)
    assert current not in UPCASTERS


def stock_change(name: str) -> Any:
    """The archived event as the catalog's codec reads it."""
    schemas = load_schemas()
    golden = next(g for g in archive(schemas) if str(g) == name)
    codec = Codec()
    reading = schemas.reading(golden.schema.text)
    codec.learn(1, reading.writer, reading.record, reading.reader, StockCounted, reading.upcast)
    return codec.decode(PREFIX.pack(MAGIC, 1) + golden.body)


@pytest.mark.parametrize("name", ["catalog/StockAdjusted.v1", "catalog/StockCorrected.v1"])
def test_an_event_of_long_ago_changes_the_stock_as_it_did_then(name: str) -> None:
    stock = reduce(evolve, [LISTED, stock_change(name)], initial)
    assert stock.shelf.supplied == 40 - 6


def test_the_codec_names_the_event_that_it_was_read_as() -> None:
    schemas, codec = load_schemas(), Codec()
    reading = schemas.reading(schemas.newest("tillroll.stock.StockAdjusted").text)
    codec.learn(7, reading.writer, reading.record, reading.reader, None, reading.upcast)
    value = PREFIX.pack(MAGIC, 7) + bytes.fromhex("0e4d55472d3335300b")
    assert codec.type_of(value) == "StockCounted"
    assert codec.decode(value) == {"sku": "MUG-350", "difference": -6, "counted": None}
