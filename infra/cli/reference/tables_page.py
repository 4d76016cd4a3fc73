"""Writes docs/tables.md from the catalog of the lake: `python -m infra.cli.reference.tables_page`."""

from collections.abc import Iterator
from importlib.resources import files

import click

from analytics.catalog import COMPUTED, Table, all_tables
from analytics.catalog.table import Column, DeltaType, sql_type

MARK = "<!-- tables -->\n"
LAYERS = {
    "bronze": "Messages as they were read from Kafka.",
    "silver": "Events, decoded, once each. Each event type has a struct column, null in rows of other types.",
    "gold": "What people ask for, computed from silver and kept fresh incrementally.",
}


def page() -> str:
    before, _, after = files(__package__).joinpath("tables_page.md").read_text().partition(MARK)
    return before + "\n".join(_lines()) + "\n" + after


def _lines() -> Iterator[str]:
    tables = list(all_tables())
    yield from ["| table | one row is identified by | content |", "|---|---|---|"]
    for table in tables:
        yield f"| [`{table.name}`](#{_anchor(table.name)}) | {_code(table.key)} | {table.description} |"
    for layer, about in LAYERS.items():
        yield from ["", f"## {layer.capitalize()}", "", about]
        for table in tables:
            if table.layer == layer:
                yield from _table(table)
    yield from ["", "## Layers made from gold", ""]
    yield "They have the columns of the gold table of the same name. Only `speed.*` differs: a table of rows also has"
    yield "`_empty`, true where a key has no rows any more; a table of sums has the differences from `batch.*`, and"
    yield "no columns that follow from them (`net_revenue`, rates)."
    yield from ["", "| layer | content |", "|---|---|"]
    for layer, description in COMPUTED.items():
        if description:
            yield f"| `{layer}.*` | {description.rstrip(': ')}. |"


def _table(table: Table) -> Iterator[str]:
    yield from ["", f"### {table.name}", "", table.description, "", f"Key: {_code(table.key)}.", ""]
    yield from ["| column | type | meaning |", "|---|---|---|"]
    for column in table.columns:
        yield from _rows(column)


def _rows(column: Column, above: str = "") -> Iterator[str]:
    """Yields the row of a column, and those of the fields within it."""
    name, fields = f"{above}{column.name}", _fields(column.type)
    kind = sql_type(column.type) if not fields else ("array of struct" if _is_array(column.type) else "struct")
    yield f"| `{name}` | {kind} | {column.description} |"
    for field in fields:
        yield from _rows(field, f"{name}.")


def _fields(kind: DeltaType) -> list[Column]:
    while not isinstance(kind, str) and kind["type"] == "array":
        kind = kind["elementType"]
    if isinstance(kind, str):
        return []
    return [Column(f["name"], f["type"], f["metadata"]["comment"]) for f in kind["fields"]]


def _is_array(kind: DeltaType) -> bool:
    return not isinstance(kind, str) and kind["type"] == "array"


def _code(names: tuple[str, ...]) -> str:
    return ", ".join(f"`{name}`" for name in names)


def _anchor(name: str) -> str:
    return name.replace(".", "")


if __name__ == "__main__":
    click.echo(page(), nl=False)
