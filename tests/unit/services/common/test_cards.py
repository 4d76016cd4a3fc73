"""Card numbers are recognised, and other numbers are not taken for them."""

from typing import Any
from uuid import UUID, uuid4

import pytest
from hypothesis import given
from hypothesis import strategies as st

from services.common.cards import has_card_number

VISA = "4111111111111111"


@pytest.mark.parametrize(
    "sent",
    [
        VISA,
        "4111 1111 1111 1111",
        "4111-1111-1111-1111",
        "378282246310005",
        "4222222222222",
        "6304000000000000000",
        f"my card is {VISA}, thank you",
        "12 4111 1111 1111 1111",
        "4111 1111 1111 1111 12/30",
        f"tok_{VISA}",
        int(VISA),
        {"payment": {"note": ["fine", {"deep": VISA}]}},
        {VISA: "as a name"},
    ],
)
def test_a_card_number_is_recognised_wherever_it_stands(sent: Any) -> None:
    assert has_card_number(sent)


@pytest.mark.parametrize(
    "sent",
    [
        "4111111111111112",
        "411111111111",
        "41111111111111111111111",
        "tok_ok",
        "2026-10-01 12:00:00",
        1_767_268_800_000,
        6370,
        -1.5,
        None,
        True,
        {"amount": 1190, "currency": "EUR"},
        "00000000-0000-5000-8000-000000000000",
    ],
)
def test_other_numbers_are_not_taken_for_card_numbers(sent: Any) -> None:
    assert not has_card_number(sent)


@given(st.integers(0, 10**20).map(lambda number: UUID(int=number * 10**18)))
def test_no_id_of_ours_is_taken_for_a_card(payment_id: UUID) -> None:
    assert not has_card_number({"payment_id": str(payment_id), "key": f"{payment_id}:authorize"})


def test_an_id_with_a_card_number_in_it_would_have_been_taken_for_one() -> None:
    """This id has no letter in its last two groups and a valid check digit; the rule for ids lets it pass."""
    assert has_card_number("4111-111111111111")
    assert not has_card_number("9b3ff0aa-5c4d-4e2a-4111-111111111111")


def test_a_long_text_of_digits_is_searched_quickly() -> None:
    assert not has_card_number({str(uuid4()): "1 " * 2_000 + "1" * 2_000})
    deep: Any = "fine"
    for _ in range(5_000):
        deep = [deep]
    assert not has_card_number(deep)
