"""Retired events are upcast to their replacements, step by step, and fold as they always did."""

from functools import reduce
from typing import Any

import pytest

from schemas.upcasters import UPCASTERS, Upcaster, stock_adjusted, stock_corrected
from services.catalog.decider import evolve, initial
from services.catalog.events import ProductListed, StockCounted
from services.common.money import Money
from shared.errors import OperatorError
from shared.schemas.codec import MAGIC, PREFIX, Codec
from shared.schemas.contract.event_schemas import load_schemas
from shared.schemas.contract.upcasting import upcast_chain
from tests.golden import archive

LISTED = ProductListed("MUG-350", "Enamel mug", Money(1290, "EUR"), 40)


def test_an_adjustment_becomes_a_correction_without_a_reason() -> None:
    old = {"sku": "MUG-350", "delta": -6}
    assert stock_adjusted(old) == {"sku": "MUG-350", "difference": -6, "reason": "unrecorded"}
    assert old == {"sku": "MUG-350", "delta": -6}, "an upcaster must not change its argument"


def test_a_correction_becomes_a_count_that_was_not_recorded() -> None:
    old = {"sku": "MUG-350", "difference": 3, "reason": "delivery"}
    assert stock_corrected(old) == {"sku": "MUG-350", "difference": 3, "counted": None}


def test_upcasters_are_chained_until_the_event_that_is_still_written() -> None:
    upcasters = {
        "v1": Upcaster("v2", lambda old: {"trail": [*old["trail"], "1 to 2"]}),
        "v2": Upcaster("v3", lambda old: {"trail": [*old["trail"], "2 to 3"]}),
    }
    record, upcast = upcast_chain(upcasters, "v1")
    assert record == "v3"
    assert upcast
    assert upcast({"trail": []}) == {"trail": ["1 to 2", "2 to 3"]}
    assert upcast_chain(upcasters, "v3") == ("v3", None)


def test_a_cycle_of_upcasters_is_refused_and_shown() -> None:
    def same(old: Any) -> dict[str, Any]:
        return dict(old)

    upcasters = {"a": Upcaster("b", same), "b": Upcaster("a", same)}
    with pytest.raises(OperatorError, match="a -> b -> a"):
        upcast_chain(upcasters, "a")


@pytest.mark.parametrize("record", UPCASTERS)
def test_a_retired_event_is_read_as_one_that_is_still_written(record: str) -> None:
    current, _ = upcast_chain(UPCASTERS, record)
    assert current not in UPCASTERS


def stock_change(name: str) -> Any:
    """Returns an event of the golden archive as the catalog's codec reads it."""
    schemas = load_schemas()
    golden = next(g for g in archive(schemas) if str(g) == name)
    codec = Codec()
    codec.learn(1, schemas.plan_reading(golden.schema.text), StockCounted)
    return codec.decode(PREFIX.pack(MAGIC, 1) + golden.body)


@pytest.mark.parametrize("name", ["catalog/StockAdjusted.v1", "catalog/StockCorrected.v1"])
def test_a_retired_stock_event_changes_the_stock_as_it_did_then(name: str) -> None:
    stock = reduce(evolve, [LISTED, stock_change(name)], initial)
    assert stock.shelf.supplied == 40 - 6


def test_the_type_of_a_retired_event_is_that_of_its_replacement() -> None:
    schemas, codec = load_schemas(), Codec()
    codec.learn(7, schemas.plan_reading(schemas.newest("tillroll.stock.StockAdjusted").text))
    value = PREFIX.pack(MAGIC, 7) + bytes.fromhex("0e4d55472d3335300b")
    assert codec.type_of(value) == "StockCounted"
    assert codec.decode(value) == {"sku": "MUG-350", "difference": -6, "counted": None}
