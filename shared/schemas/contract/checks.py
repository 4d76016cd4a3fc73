"""All that can be said against `schemas/` without a registry. A test runs it, and so does `till schemas check`."""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from importlib.resources.abc import Traversable
from typing import Any

from schemas.upcasters import UPCASTERS
from shared.compatibility import incompatibilities, side
from shared.errors import OperatorError
from shared.released import changed, deleted
from shared.schemas import ROOT, EventSchema, Schemas, load_schemas
from shared.upcasters import Upcasters, chain

NAME = re.compile(r"[A-Za-z_]\w*", re.ASCII)


@dataclass(frozen=True)
class Problem:
    where: str
    """A schema, `cart/ItemAdded.v2`, or what else is wrong."""
    what: str
    instead: str
    """What to do about it."""


def problems(root: Traversable = ROOT, upcasters: Upcasters = UPCASTERS) -> list[Problem]:
    try:
        schemas = load_schemas(root, upcasters)
        found = [*_compatibility(schemas), *_wording(schemas), *_upcasters(schemas)]
    except OperatorError as error:
        found = [Problem("schemas", error.message, error.hint)]
    return [*_released(root), *found]


def _released(root: Traversable) -> Iterator[Problem]:
    for path in changed(root):
        yield Problem(
            path.removesuffix(".avsc"),
            "it was released, and it was changed since. Events were written with it as it was.",
            "Take the change back (git checkout) and put it into the next version's file.",
        )
    for path in deleted(root):
        yield Problem(
            path.removesuffix(".avsc"),
            "it was released, and it is gone. Events that were written with it could not be read.",
            "Bring it back. An event that is no longer written is retired in schemas/upcasters.py.",
        )


def _compatibility(schemas: Schemas) -> Iterator[Problem]:
    for versions in schemas.records.values():
        named = {f"v{schema.version}": schema for schema in versions}
        sides = [side(name, schema.definition) for name, schema in named.items()]
        for newer, older, finding in incompatibilities(sides):
            yield Problem(str(named[newer]), f"not compatible with {older}: {finding}", finding.instead)


def _wording(schemas: Schemas) -> Iterator[Problem]:
    """What fastavro lets pass and other readers, or people, do not."""
    for schema in schemas.all:
        for record in _records(schema.parsed):
            names = [field["name"] for field in record["fields"]]
            for field in record["fields"]:
                yield from _field(schema, field)
            for name in {name for name in names if names.count(name) > 1}:
                yield Problem(str(schema), f"field {name}: it is there twice.", "Give each field its own name.")
            if not record.get("doc", "").strip():
                yield Problem(str(schema), f"{record['name']} has no doc.", "Say in a sentence what happened.")


def _field(schema: EventSchema, field: dict[str, Any]) -> Iterator[Problem]:
    name = field["name"]
    if not field.get("doc", "").strip():
        yield Problem(str(schema), f"field {name}: it has no doc.", "Say what it means, and its unit if it has one.")
    if not NAME.fullmatch(name):
        yield Problem(str(schema), f"field {name}: not a name in Avro.", "Letters, digits and _; no digit in front.")
    union = field["type"] if isinstance(field["type"], list) else []
    if union and "default" in field and (field["default"] is None) != (union[0] == "null"):
        yield Problem(
            str(schema),
            f"field {name}: its default {field['default']!r} is not of the union's first type.",
            "Put the type of the default first: most implementations accept no other.",
        )


def _records(parsed: Any) -> list[dict[str, Any]]:
    return [named for named in parsed["__named_schemas"].values() if named["type"] == "record"]


def _upcasters(schemas: Schemas) -> Iterator[Problem]:
    for record, upcaster in schemas.upcasters.items():
        for name in {record, upcaster.into} - schemas.records.keys():
            yield Problem(
                "schemas/upcasters.py",
                f"{record} is upcast into {upcaster.into}, and there is no schema of {name}.",
                "Mend the name. The schema of a retired event stays, for its events do.",
            )
        if {record, upcaster.into} <= schemas.records.keys():
            old, new = schemas.newest(record), schemas.newest(upcaster.into)
            if old.topic != new.topic:
                yield Problem(
                    "schemas/upcasters.py",
                    f"{record} is in {old.topic}, and {upcaster.into} in {new.topic}.",
                    "An event is replaced within its topic: its readers are there.",
                )
        chain(schemas.upcasters, record)
