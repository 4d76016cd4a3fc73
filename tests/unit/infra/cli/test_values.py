"""Values and tables as people and machines read them."""

import json
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from typing import Any

import pytest

from infra.cli.render.tables import aligned, markdown
from infra.cli.render.values import SENTENCE, csv_field, row_as_json, text

NOON = datetime(2026, 11, 16, 12)
ZONED = "TIMESTAMP WITH TIME ZONE"


@pytest.mark.parametrize(
    ("value", "shown"),
    [
        (None, ""),
        (True, "true"),
        (7, "7"),
        (0.1 + 0.2, "0.3"),
        (12345678.9, "12345679"),
        (Decimal("179.00"), "179.00"),
        (NOON, "2026-11-16 12:00:00"),
        (NOON + timedelta(milliseconds=250), "2026-11-16 12:00:00.250"),
        (date(2026, 11, 16), "2026-11-16"),
        (bytes(3), "x000000"),
        (bytes(20), "x000000000000000000000000… (20 bytes)"),
        ({"sku": "MUG-350", "note": None, "price": {"amount": 1190}}, "{sku: MUG-350, price: {amount: 1190}}"),
        ([{"key": "ce_id", "value": b"\x01"}, None], "[{key: ce_id, value: x01}, -]"),
        ("a\x1b[31mred\nline", "a [31mred line"),
    ],
)
def test_a_value_is_one_line_in_a_cell(value: Any, shown: str) -> None:
    assert text(value) == shown


@pytest.mark.parametrize(
    ("value", "shown"),
    [
        (None, "none"),
        (True, "yes"),
        ("MUG-350", "MUG-350"),
        (datetime(2026, 11, 16, 12, microsecond=7000, tzinfo=UTC), "2026-11-16 12:00:00.007 UTC"),
        ({"amount": 1190, "currency": "EUR"}, "11.90 EUR"),
        ({"name": "Mug", "quantity": 2, "unit_price": {"amount": 1190, "currency": "EUR"}}, "2 x Mug at 11.90 EUR"),
        ({"method": "standard", "note": None}, "method: standard; note: none"),
        ([], "none"),
        (["a", "b"], "a, b"),
    ],
)
def test_a_value_is_in_words_in_a_sentence_about_an_event(value: Any, shown: str) -> None:
    assert text(value, SENTENCE) == shown


def test_json_keeps_numbers_as_numbers_and_moments_with_their_zone() -> None:
    columns = ["big", "cents", "nan", "at", "local", "bytes", "took", "parts"]
    kinds = ["HUGEINT", "DECIMAL(18,2)", "DOUBLE", ZONED, "TIMESTAMP", "BLOB", "INTERVAL", f"STRUCT(at {ZONED})[]"]
    row = [10**30, Decimal("1.10"), float("nan"), NOON, NOON, b"\x01\xff", timedelta(seconds=1.5), [{"at": NOON}]]
    assert json.loads(row_as_json(columns, kinds, row)) == {
        "big": 10**30,
        "cents": 1.1,
        "nan": None,
        "at": "2026-11-16T12:00:00Z",
        "local": "2026-11-16T12:00:00",
        "bytes": "01ff",
        "took": 1.5,
        "parts": [{"at": "2026-11-16T12:00:00Z"}],
    }
    assert csv_field([{"at": NOON}], f"STRUCT(at {ZONED})[]") == '[{"at": "2026-11-16T12:00:00Z"}]'


def test_columns_line_up_numbers_to_the_right() -> None:
    lines = list(aligned(["sku", "pieces"], [["MUG-350", "7"], ["T", "1,000"]], [False, True]))
    assert lines == ["sku      pieces", "MUG-350       7", "T         1,000"]


def test_a_table_in_markdown_survives_a_bar_in_a_cell() -> None:
    lines = list(markdown(["why", "n"], ["VARCHAR", "BIGINT"], [("a|b", 1)]))
    assert lines == ["| why | n |", "| --- | ---: |", "| a\\|b | 1 |"]
