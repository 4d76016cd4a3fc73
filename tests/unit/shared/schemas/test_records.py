"""The compiled converters and the plain walk over the fields agree on every value."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import NamedTuple

from hypothesis import given
from hypothesis import strategies as st

from shared.schemas.records import from_record, to_record, walk_from_record, walk_to_record


class Price(NamedTuple):
    amount: int
    currency: str


@dataclass(frozen=True, slots=True)
class Line:
    sku: str
    price: Price
    gift_note: str | None


@dataclass(frozen=True, slots=True)
class Basket:
    """One field of each kind that events and states have, and their combinations."""

    lines: tuple[Line, ...]
    by_sku: Mapping[str, Line]
    prices: Mapping[str, tuple[Price, ...]]
    codes: frozenset[str]
    discount: Price | None
    paid: bool


prices = st.builds(Price, st.integers(), st.text())
lines = st.builds(Line, st.text(), prices, st.none() | st.text())
baskets = st.builds(
    Basket,
    lines=st.lists(lines, max_size=3).map(tuple),
    by_sku=st.dictionaries(st.text(), lines, max_size=3),
    prices=st.dictionaries(st.text(), st.lists(prices, max_size=2).map(tuple), max_size=2),
    codes=st.frozensets(st.text(), max_size=3),
    discount=st.none() | prices,
    paid=st.booleans(),
)


@given(baskets)
def test_the_compiled_converter_writes_the_record_that_the_walk_writes(basket: Basket) -> None:
    assert to_record(Basket)(basket) == walk_to_record(Basket, basket)


@given(baskets)
def test_the_compiled_converter_reads_the_value_that_the_walk_reads(basket: Basket) -> None:
    record = walk_to_record(Basket, basket)
    assert from_record(Basket)(record) == walk_from_record(Basket, record) == basket


def test_a_set_is_written_in_a_fixed_order() -> None:
    basket = Basket((), {}, {}, frozenset({"b", "a", "c"}), None, False)
    assert to_record(Basket)(basket)["codes"] == ["a", "b", "c"]
