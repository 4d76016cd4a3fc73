"""Avro schemas as Delta types, with the documentation of every field as its comment. Spark reads events as these."""

from collections.abc import Mapping
from typing import Any

from analytics.catalog.table import Column, DeltaType, array, struct

PRIMITIVE = {"string": "string", "int": "integer", "long": "long", "boolean": "boolean", "bytes": "binary"}


def delta_type(definition: Mapping[str, Any]) -> DeltaType:
    """Returns the type of a record, all fields nullable: Delta keeps no promise of non-null within a list."""
    return struct(*record_columns(definition))


def record_columns(definition: Mapping[str, Any]) -> tuple[Column, ...]:
    return _columns(definition, {})


def _columns(record: Mapping[str, Any], named: dict[str, Mapping[str, Any]]) -> tuple[Column, ...]:
    named[_full_name(record)] = record
    return tuple(Column(f["name"], _type(f["type"], named), f.get("doc", "")) for f in record["fields"])


def _type(avro: Any, named: dict[str, Mapping[str, Any]]) -> DeltaType:
    match avro:
        case [*choices]:
            [choice] = [choice for choice in choices if choice != "null"]
            return _type(choice, named)
        case {"type": "record"}:
            return struct(*_columns(avro, named))
        case {"type": "array", "items": items}:
            return array(_type(items, named))
        case str() if avro in named:
            return _type(named[avro], named)
        case _:
            return PRIMITIVE[avro]


def _full_name(record: Mapping[str, Any]) -> str:
    return f"{record['namespace']}.{record['name']}" if record.get("namespace") else record["name"]
