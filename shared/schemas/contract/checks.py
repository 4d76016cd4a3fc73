"""Checks `schemas/` without a registry: compatibility, wording, released files and upcasters.

A unit test runs these checks, and so does `till schemas check`.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from importlib.resources.abc import Traversable
from typing import Any

from schemas.upcasters import UPCASTERS
from shared.errors import OperatorError
from shared.schemas.contract.compatibility import Side, transitive_incompatibilities
from shared.schemas.contract.event_schemas import ROOT, EventSchema, Schemas, load_schemas
from shared.schemas.contract.release_lock import changed_files, deleted_files
from shared.schemas.contract.upcasting import Upcasters, upcast_chain

NAME = re.compile(r"[A-Za-z_]\w*", re.ASCII)


@dataclass(frozen=True)
class SchemaProblem:
    """One fault of the contract, and how to correct it."""

    where: str
    """The schema, `cart/ItemAdded.v2`, or another file or server at fault."""
    what: str
    instead: str
    """The suggested correction."""


def find_problems(root: Traversable = ROOT, upcasters: Upcasters = UPCASTERS) -> list[SchemaProblem]:
    try:
        schemas = load_schemas(root, upcasters)
        found = [*_check_compatibility(schemas), *_check_definitions(schemas), *_check_upcasters(schemas)]
    except OperatorError as error:
        found = [SchemaProblem("schemas", error.message, error.hint)]
    return [*_check_release_lock(root), *found]


def _check_release_lock(root: Traversable) -> Iterator[SchemaProblem]:
    for path in changed_files(root):
        yield SchemaProblem(
            path.removesuffix(".avsc"),
            "it was changed after its release. Events were written with the released version.",
            "Undo the change (git checkout) and put it into the file of the next version.",
        )
    for path in deleted_files(root):
        yield SchemaProblem(
            path.removesuffix(".avsc"),
            "it was deleted after its release. Events written with it could no longer be read.",
            "Restore it. An event that is no longer written is retired in schemas/upcasters.py.",
        )


def _check_compatibility(schemas: Schemas) -> Iterator[SchemaProblem]:
    for versions in schemas.records.values():
        named = {f"v{schema.version}": schema for schema in versions}
        sides = [Side.parse(name, schema.definition) for name, schema in named.items()]
        for newer, older, finding in transitive_incompatibilities(sides):
            yield SchemaProblem(str(named[newer]), f"not compatible with {older}: {finding}", finding.instead)


def _check_definitions(schemas: Schemas) -> Iterator[SchemaProblem]:
    """Finds what fastavro accepts but other Avro readers, or people, do not."""
    for schema in schemas.all:
        for record in _nested_records(schema.parsed):
            names = [field["name"] for field in record["fields"]]
            for field in record["fields"]:
                yield from _check_field(schema, field)
            for name in {name for name in names if names.count(name) > 1}:
                yield SchemaProblem(str(schema), f"field {name}: it exists twice.", "Give each field its own name.")
            if not record.get("doc", "").strip():
                yield SchemaProblem(
                    str(schema), f"{record['name']} has no doc.", "Describe in one sentence what happened."
                )


def _check_field(schema: EventSchema, field: dict[str, Any]) -> Iterator[SchemaProblem]:
    name = field["name"]
    if not field.get("doc", "").strip():
        yield SchemaProblem(
            str(schema), f"field {name}: it has no doc.", "Describe its meaning, and its unit if it has one."
        )
    if not NAME.fullmatch(name):
        yield SchemaProblem(
            str(schema),
            f"field {name}: not a valid Avro name.",
            "Use letters, digits and _, not starting with a digit.",
        )
    union = field["type"] if isinstance(field["type"], list) else []
    if union and "default" in field and (field["default"] is None) != (union[0] == "null"):
        yield SchemaProblem(
            str(schema),
            f"field {name}: its default {field['default']!r} is not of the union's first type.",
            "Put the type of the default first: most implementations accept no other.",
        )


def _nested_records(parsed: Any) -> list[dict[str, Any]]:
    return [named for named in parsed["__named_schemas"].values() if named["type"] == "record"]


def _check_upcasters(schemas: Schemas) -> Iterator[SchemaProblem]:
    for record, upcaster in schemas.upcasters.items():
        for name in {record, upcaster.into} - schemas.records.keys():
            yield SchemaProblem(
                "schemas/upcasters.py",
                f"{record} is upcast into {upcaster.into}, and {name} has no schema.",
                "Correct the name. A retired event keeps its schema, because its events stay in the log.",
            )
        if {record, upcaster.into} <= schemas.records.keys():
            old, new = schemas.newest(record), schemas.newest(upcaster.into)
            if old.topic != new.topic:
                yield SchemaProblem(
                    "schemas/upcasters.py",
                    f"{record} is in {old.topic}, and {upcaster.into} in {new.topic}.",
                    "An event is replaced within its topic, where its readers are.",
                )
        upcast_chain(schemas.upcasters, record)  # raises for a cycle
