"""Tables and columns as the catalog describes them, and as Delta stores them."""

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any

DeltaType = str | Mapping[str, Any]
"""A type as Delta's schema spells it: `string`, `long`, or an object for structs and arrays."""

SQL_NAMES = {"integer": "int", "long": "bigint", "short": "smallint", "byte": "tinyint"}


@dataclass(frozen=True)
class Column:
    name: str
    type: DeltaType
    description: str

    def field(self) -> dict[str, Any]:
        """Returns the column as Delta's schema has it, with the description as its comment."""
        return {"name": self.name, "type": self.type, "nullable": True, "metadata": {"comment": self.description}}


@dataclass(frozen=True)
class Table:
    name: str
    """Full name, with the layer: `gold.orders`."""
    description: str
    columns: tuple[Column, ...]
    key: tuple[str, ...]
    """Columns that identify a row."""
    stats: tuple[str, ...] = ()
    """Columns whose range Delta keeps for each file: those that queries filter by. All of them would be a hundred."""

    @property
    def layer(self) -> str:
        return self.name.partition(".")[0]

    def schema_json(self) -> str:
        return json.dumps({"type": "struct", "fields": [column.field() for column in self.columns]})

    def renamed(self, name: str, description: str) -> "Table":
        return replace(self, name=name, description=description)


def names(columns: Iterable[Column]) -> list[str]:
    return [column.name for column in columns]


def struct(*columns: Column) -> DeltaType:
    return {"type": "struct", "fields": [column.field() for column in columns]}


def array(element: DeltaType) -> DeltaType:
    return {"type": "array", "elementType": element, "containsNull": True}


def sql_type(delta: DeltaType) -> str:
    """Spells a type as SQL does: `array<struct<sku: string, quantity: int>>`."""
    if isinstance(delta, str):
        return SQL_NAMES.get(delta, delta)
    if delta["type"] == "array":
        return f"array<{sql_type(delta['elementType'])}>"
    inner = (f"{field['name']}: {sql_type(field['type'])}" for field in delta["fields"])
    return f"struct<{', '.join(inner)}>"


def ddl(columns: Iterable[Column]) -> str:
    return ", ".join(f"{column.name} {sql_type(column.type)}" for column in columns)
