"""Money adds up exactly, or not at all."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from services.common.money import Money
from shared.errors import Refused


def euro(cents: int) -> Money:
    return Money(cents, "EUR")


@given(st.integers(), st.integers(), st.integers(0, 100))
def test_adding_and_multiplying_are_exact(a: int, b: int, count: int) -> None:
    assert (euro(a) + euro(b)).times(count) == euro(a).times(count) + euro(b).times(count) == euro((a + b) * count)


def test_amounts_of_two_currencies_cannot_be_added() -> None:
    with pytest.raises(Refused) as refusal:
        euro(100) + Money(100, "JPY")
    assert refusal.value.code == "currency-mixed"


@pytest.mark.parametrize(
    ("money", "written"),
    [
        (euro(1290), "12.90 EUR"),
        (euro(5), "0.05 EUR"),
        (euro(0), "0.00 EUR"),
        (euro(-5), "-0.05 EUR"),
        (Money(1290, "JPY"), "1290 JPY"),
        (Money(12900, "KWD"), "12.900 KWD"),
    ],
)
def test_money_is_written_in_the_decimals_of_its_currency(money: Money, written: str) -> None:
    assert str(money) == written
