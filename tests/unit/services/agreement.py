"""Compares event classes with their newest schemas: names, order and types of the fields."""

import json
from collections.abc import Iterable
from dataclasses import fields, is_dataclass
from importlib.resources import files
from io import BytesIO
from types import UnionType
from typing import Any, get_args, get_origin, get_type_hints

from fastavro import schemaless_reader, schemaless_writer
from fastavro.schema import parse_schema

SCHEMAS = files("schemas")
PLAIN: dict[type, tuple[str, ...]] = {str: ("string",), int: ("int", "long"), bool: ("boolean",)}


def newest(folder: str) -> dict[str, dict[str, Any]]:
    """Returns the newest schema of each record in a folder of `schemas/`, by full name."""
    found: dict[str, tuple[int, dict[str, Any]]] = {}
    for file in (SCHEMAS / folder).iterdir():
        name, version = file.name.removesuffix(".avsc").split(".v")
        schema = json.loads(file.read_text())
        assert schema["name"] == name, f"{file.name} defines {schema['name']}"
        full = f"{schema['namespace']}.{name}"
        found[full] = max(found.get(full, (0, schema)), (int(version), schema), key=lambda known: known[0])
    return {full: schema for full, (_, schema) in found.items()}


def there_and_back(record: dict[str, Any], schema: dict[str, Any]) -> Any:
    """Writes the record as Avro and reads it back; the shared types are known by name."""
    known: dict[str, Any] = {}
    for name in ("Money", "Line"):  # a Line needs Money
        parse_schema(newest("shared")[f"tillroll.{name}"], known)
    parsed = parse_schema(schema, known)
    written = BytesIO()
    schemaless_writer(written, parsed, record)
    written.seek(0)
    return schemaless_reader(written, parsed, None)


def disagreements(event: type, schema: dict[str, Any]) -> list[str]:
    hints = get_type_hints(event)
    in_class = [field.name for field in fields(event)]
    in_schema = [field["name"] for field in schema["fields"]]
    if in_class != in_schema:
        return [f"{event.__name__} has {in_class}, its schema {in_schema}"]
    return [
        f"{event.__name__}.{field['name']} is {hints[field['name']]}, in its schema {field['type']}"
        for field in schema["fields"]
        if field["type"] not in avro_types(hints[field["name"]])
    ]


def avro_types(hint: Any) -> Iterable[Any]:
    if get_origin(hint) is tuple:
        return [{"type": "array", "items": items} for items in avro_types(get_args(hint)[0])]
    if get_origin(hint) is UnionType:  # X | None
        return [["null", some] for some in avro_types(get_args(hint)[0])]
    if is_dataclass(hint) and isinstance(hint, type):
        return [f"tillroll.{hint.__name__}"]
    return PLAIN[hint]


def undocumented(schema: dict[str, Any]) -> list[str]:
    return [part["name"] for part in (schema, *schema["fields"]) if not part.get("doc", "").strip()]
