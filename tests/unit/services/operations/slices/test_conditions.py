"""What `--where` understands, and what it does not."""

from typing import Any

import pytest

from services.replay.expressions import BadExpression, where

NAMES = frozenset(("type", "version", "actor", "data"))
MESSAGE: dict[str, Any] = {
    "type": "CartCheckedOut",
    "version": 4,
    "actor": None,
    "data": {"total": {"amount": 1290}, "lines": [{"sku": "MUG-350", "quantity": 1}, {"sku": "KIT-1", "quantity": 2}]},
}


@pytest.mark.parametrize(
    "text",
    [
        "type == 'CartCheckedOut'",
        "type != 'ItemAdded' and version >= 4",
        "not type == 'ItemAdded' or version < 0",
        "type in ['CartCheckedOut', 'CartAbandoned']",
        "'KIT-1' in data.lines.sku",
        "data.lines[1].quantity == 2",
        "data['total']['amount'] > 1000",
        "1 < version <= 4",
        "data.no.such.field == None",
        "data.total.amount > -1",
    ],
)
def test_what_holds(text: str) -> None:
    assert where(text, NAMES)(MESSAGE)


@pytest.mark.parametrize(
    "text",
    ["type == 'ItemAdded'", "version > 4", "data.nothing > 5", "actor < 3", "'X' in data.nothing", "data.lines[9].sku"],
)
def test_what_does_not_hold_or_cannot_be_compared(text: str) -> None:
    assert not where(text, NAMES)(MESSAGE)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "cannot be read"),
        ("type ==", "cannot be read"),
        ("kind == 'x'", "There is no field 'kind'. There are: actor, data, type, version."),
        ("__import__('os').system('true')", "is not understood here"),
        ("data.lines.sku.__class__()", "is not understood here"),
        ("[x for x in data]", "is not understood here"),
        ("lambda: 1", "is not understood here"),
        ("version + 1 == 5", "is not understood here"),
        ("type is 'x'", "'is' is not understood here"),
        ("f'{type}' == 'x'", "is not understood here"),
        ("(" * 300 + "1" + ")" * 300, "cannot be read"),
        ("not " * 60 + "type", "nested too deeply"),
        ("type == 'x' or " * 200 + "type", "longer than"),
    ],
)
def test_what_is_not_understood_is_said(text: str, said: str) -> None:
    with pytest.raises(BadExpression) as wrong:
        where(text, NAMES)
    assert said in str(wrong.value)


def test_dunder_fields_are_looked_up_in_the_message_and_nowhere_else() -> None:
    assert where("data.__class__ == None", NAMES)(MESSAGE)
