"""The conditions of `till replay --where`."""

from typing import Any

import pytest

from services.operations.slices.conditions import BadCondition, parse_condition

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
def test_a_condition_holds_for_the_message(text: str) -> None:
    assert parse_condition(text, NAMES)(MESSAGE)


@pytest.mark.parametrize(
    "text",
    ["type == 'ItemAdded'", "version > 4", "data.nothing > 5", "actor < 3", "'X' in data.nothing", "data.lines[9].sku"],
)
def test_a_condition_does_not_hold_where_values_differ_or_cannot_be_compared(text: str) -> None:
    assert not parse_condition(text, NAMES)(MESSAGE)


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("", "cannot be read"),
        ("type ==", "cannot be read"),
        ("kind == 'x'", "There is no field 'kind'. There are: actor, data, type, version."),
        ("__import__('os').system('true')", "is not supported"),
        ("data.lines.sku.__class__()", "is not supported"),
        ("[x for x in data]", "is not supported"),
        ("lambda: 1", "is not supported"),
        ("version + 1 == 5", "is not supported"),
        ("type is 'x'", "'is' is not supported"),
        ("f'{type}' == 'x'", "is not supported"),
        ("(" * 300 + "1" + ")" * 300, "cannot be read"),
        ("not " * 60 + "type", "nested too deeply"),
        ("type == 'x' or " * 200 + "type", "longer than"),
    ],
)
def test_a_text_that_is_no_condition_is_refused_with_a_reason(text: str, reason: str) -> None:
    with pytest.raises(BadCondition) as wrong:
        parse_condition(text, NAMES)
    assert reason in str(wrong.value)


def test_dunder_fields_are_looked_up_in_the_message_and_nowhere_else() -> None:
    assert parse_condition("data.__class__ == None", NAMES)(MESSAGE)
