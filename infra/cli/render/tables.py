"""Rows as a table: on a terminal, in a pipe and in Markdown."""

from collections.abc import Iterable, Sequence
from typing import Any

from rich.table import Table
from rich.text import Text

from infra.cli.render.console import out
from infra.cli.render.values import text

NUMBERS = ("TINYINT", "SMALLINT", "INTEGER", "BIGINT", "HUGEINT", "UBIGINT", "FLOAT", "DOUBLE", "DECIMAL", "INTERVAL")

Row = Sequence[Any]


def print_rows(columns: Sequence[str], kinds: Sequence[str], rows: Iterable[Row]) -> None:
    """Prints a table on a terminal; elsewhere aligned columns that are never cut."""
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
    """Yields the lines of a Markdown table."""
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
