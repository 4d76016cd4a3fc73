"""Values from the lake as people and machines read them: moments in UTC, structs and lists in short, bytes in hex."""

import json
import math
from collections.abc import Iterable, Sequence
from datetime import date, datetime, time, timedelta
from decimal import Decimal
from typing import Any

from rich.table import Table
from rich.text import Text

from infra.cli.console import out

LONGEST_BYTES = 12
NUMBERS = ("TINYINT", "SMALLINT", "INTEGER", "BIGINT", "HUGEINT", "UBIGINT", "FLOAT", "DOUBLE", "DECIMAL", "INTERVAL")

Row = Sequence[Any]


def text(value: Any) -> str:
    """On one line, for a cell. Nothing is an empty cell, but a dash inside of others."""
    match value:
        case None:
            return ""
        case bool():
            return str(value).lower()
        case bytes():
            shown = f"x{value[:LONGEST_BYTES].hex()}"
            return shown if len(value) <= LONGEST_BYTES else f"{shown}… ({len(value)} bytes)"
        case datetime():
            return value.isoformat(" ", "seconds" if not value.microsecond else "milliseconds")
        case float():
            return f"{value:.6g}" if abs(value) < 1e6 else f"{value:.0f}"
        case dict():
            inside = (f"{name}: {text(inner) or '-'}" for name, inner in value.items() if inner is not None)
            return f"{{{', '.join(inside)}}}"
        case list() | tuple():
            return f"[{', '.join(text(inner) or '-' for inner in value)}]"
        case _:
            return "".join(c if c.isprintable() else " " for c in str(value))


def plain(value: Any, kind: str) -> Any:
    """For JSON: numbers stay numbers, moments are RFC 3339, bytes hexadecimal."""
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


def as_json(columns: Sequence[str], kinds: Sequence[str], row: Row) -> str:
    """One object. Not by orjson: sums of DuckDB may have more than 64 bits."""
    values = map(plain, row, kinds)
    return json.dumps(dict(zip(columns, values, strict=True)), ensure_ascii=False)


def field(value: Any, kind: str) -> Any:
    """For CSV: as in JSON, and what has parts is JSON."""
    simple = plain(value, kind)
    return json.dumps(simple, ensure_ascii=False) if isinstance(simple, dict | list | bool) else simple


def print_rows(columns: Sequence[str], kinds: Sequence[str], rows: Iterable[Row]) -> None:
    """A table on a terminal; elsewhere, columns that line up and are never cut."""
    cells = [[text(value) for value in row] for row in rows]
    right = [kind.startswith(NUMBERS) and "[" not in kind for kind in kinds]
    if out.is_terminal:
        out.print(_table(columns, cells, right))
        return
    for line in aligned(columns, cells, right):
        out.print(Text(line), soft_wrap=True)


def aligned(columns: Sequence[str], cells: Sequence[Sequence[str]], right: Sequence[bool]) -> Iterable[str]:
    widths = [max(map(len, column)) for column in zip(columns, *cells, strict=True)]
    for row in (columns, *cells):
        padded = (c.rjust(w) if r else c.ljust(w) for c, w, r in zip(row, widths, right, strict=True))
        yield "  ".join(padded).rstrip()


def markdown(columns: Sequence[str], kinds: Sequence[str], rows: Iterable[Row]) -> Iterable[str]:
    """A table as Markdown has it."""
    yield f"| {' | '.join(columns)} |"
    yield f"|{'|'.join(' ---: ' if kind.startswith(NUMBERS) else ' --- ' for kind in kinds)}|"
    for row in rows:
        cells = (text(value).replace("|", "\\|") for value in row)
        yield f"| {' | '.join(cells)} |"


def _table(columns: Sequence[str], cells: Sequence[Sequence[str]], right: Sequence[bool]) -> Table:
    table = Table(box=None, header_style="dim")
    for column, is_right in zip(columns, right, strict=True):
        table.add_column(Text(column), justify="right" if is_right else "left", overflow="fold")
    for row in cells:
        table.add_row(*map(Text, row))
    return table
