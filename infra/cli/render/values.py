"""Values as people and as machines read them.

`text` is for people and takes a style: CELL for a cell of a table, SENTENCE for a line about an event. `plain` is for
machines: it leaves only what JSON has. `size` is for bytes, `moments.py` for times.
"""

import json
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import date, datetime, time, timedelta
from decimal import Decimal
from typing import Any

from infra.cli.render.moments import precise
from services.common.money import Money

LONGEST_BYTES = 12
KB, MB = 1_000, 1_000_000


@dataclass(frozen=True)
class Style:
    nothing: str
    nothing_inside: str
    """Stands for None within a list or a dictionary."""
    booleans: tuple[str, str]
    moment: Callable[[datetime], str]
    mapping: Callable[[dict[str, str]], str]
    sequence: Callable[[list[str]], str]
    shows_missing_fields: bool
    """Prints the fields of a dictionary that are None."""
    knows_money: bool
    """Prints amounts with their currency, and order lines in words."""


CELL = Style(
    nothing="",
    nothing_inside="-",
    booleans=("false", "true"),
    moment=lambda moment: moment.isoformat(" ", "seconds" if not moment.microsecond else "milliseconds"),
    mapping=lambda parts: "{" + ", ".join(f"{name}: {part}" for name, part in parts.items()) + "}",
    sequence=lambda parts: f"[{', '.join(parts)}]",
    shows_missing_fields=False,
    knows_money=False,
)
SENTENCE = Style(
    nothing="none",
    nothing_inside="none",
    booleans=("no", "yes"),
    moment=precise,
    mapping=lambda parts: "; ".join(f"{name}: {part}" for name, part in parts.items()) or "none",
    sequence=lambda parts: ", ".join(parts) or "none",
    shows_missing_fields=True,
    knows_money=True,
)


def text(value: Any, style: Style = CELL) -> str:
    """Formats a value on one line."""
    match value:
        case None:
            return style.nothing
        case bool():
            return style.booleans[value]
        case bytes():
            start = f"x{value[:LONGEST_BYTES].hex()}"
            return start if len(value) <= LONGEST_BYTES else f"{start}… ({len(value)} bytes)"
        case datetime():
            return style.moment(value)
        case float():
            return f"{value:.6g}" if abs(value) < 1e6 else f"{value:.0f}"
        case {"quantity": quantity, "unit_price": price} if style.knows_money:
            name = f" x {value['name']}" if value.get("name") else ""
            return f"{quantity}{name} at {text(price, style)}"
        case {"amount": int(amount), "currency": str(currency)} if style.knows_money:
            return str(Money(amount, currency))
        case dict():
            shown = {k: v for k, v in value.items() if v is not None or style.shows_missing_fields}
            return style.mapping({str(name): _inside(inner, style) for name, inner in shown.items()})
        case list() | tuple():
            return style.sequence([_inside(inner, style) for inner in value])
        case _:
            return "".join(c if c.isprintable() else " " for c in str(value))


def _inside(value: Any, style: Style) -> str:
    return text(value, style) or style.nothing_inside


def size(count: int) -> str:
    """Formats a number of bytes."""
    return f"{count / MB:,.1f} MB" if count >= MB else f"{count / KB:,.0f} kB"


def plain(value: Any, kind: str) -> Any:
    """Converts a value of the SQL type `kind` for JSON: numbers stay numbers, moments become RFC 3339, bytes hex."""
    match value:
        case float() if not math.isfinite(value):
            return None
        case Decimal():
            return int(value) if value == value.to_integral_value() else float(value)
        case bytes():
            return value.hex()
        case datetime():
            return value.isoformat() + ("Z" if "TIME ZONE" in kind else "")
        case date() | time():
            return value.isoformat()
        case timedelta():
            return value.total_seconds()
        case dict():
            return {str(name): plain(inner, kind) for name, inner in value.items()}
        case list() | tuple():
            return [plain(inner, kind) for inner in value]
        case None | bool() | int() | float() | str():
            return value
        case _:
            return str(value)


def row_as_json(columns: Sequence[str], kinds: Sequence[str], row: Sequence[Any]) -> str:
    """Formats a row as one JSON object. (orjson cannot: a sum in DuckDB may have more than 64 bits.)"""
    values = map(plain, row, kinds)
    return json.dumps(dict(zip(columns, values, strict=True)), ensure_ascii=False)


def csv_field(value: Any, kind: str) -> Any:
    """Converts a value for CSV as for JSON; a list or a dictionary becomes JSON in its field."""
    simple = plain(value, kind)
    return json.dumps(simple, ensure_ascii=False) if isinstance(simple, dict | list | bool) else simple
