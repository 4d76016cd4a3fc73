"""Fields of the same name are carried from one record to the next."""

from dataclasses import dataclass
from types import SimpleNamespace

import pytest

from services.common.fields import carry


@dataclass(frozen=True)
class Ordered:
    order_id: str
    note: str
    at: int
    gift: bool = False


def test_fields_of_the_same_name_are_carried_and_given_ones_win() -> None:
    source = SimpleNamespace(order_id="o1", note="for Bob", at=1, something_else=7)
    assert carry(Ordered, source, at=2) == Ordered("o1", "for Bob", 2)
    assert carry(Ordered, vars(source), at=2) == Ordered("o1", "for Bob", 2)


def test_a_field_with_a_default_is_carried_too_and_keeps_the_default_if_the_source_lacks_it() -> None:
    assert carry(Ordered, {"order_id": "o1", "note": "", "at": 1, "gift": True}).gift
    assert not carry(Ordered, {"order_id": "o1", "note": "", "at": 1}).gift


def test_a_field_that_nobody_gives_is_an_error() -> None:
    with pytest.raises(TypeError, match="note"):
        carry(Ordered, {"order_id": "o1"}, at=2)
