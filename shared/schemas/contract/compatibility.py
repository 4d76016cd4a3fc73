"""Checks FULL_TRANSITIVE compatibility without a registry, and explains each conflict: which field, why, what to do.

The rules are those of Avro's schema resolution plus two of our own, without which two readers could see different
things in the same bytes. Apache's checker (`avro.compatibility`) answers only yes or no and knows neither of the two,
and nothing else needs that library at run time; the tests use it as the oracle for every verdict given here.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Any, Self

from fastavro.schema import parse_schema

Avro = Any
"""A schema as parsed JSON: a name, a list (a union) or an object. All names are full names."""

PROMOTIONS = {
    "int": {"long", "float", "double"},
    "long": {"float", "double"},
    "float": {"double"},
    "string": {"bytes"},
    "bytes": {"string"},
}
"""The other types that a written type may be read as (Avro's type promotion)."""

NEW_EVENT = "Or write a new event type and an upcaster from this one (docs/adr/0010)."


@dataclass(frozen=True)
class Finding:
    """One reason why two versions are not fully compatible."""

    field: str
    """Path of the field, `lines[].unit_price`; empty if the record itself is meant."""
    why: str
    instead: str

    def __str__(self) -> str:
        return f"field {self.field}: {self.why}" if self.field else self.why


@dataclass(frozen=True)
class Side:
    """One of two compared schemas: its name in sentences, and the types it defines."""

    name: str
    schema: Avro
    types: dict[str, Avro]

    @classmethod
    def parse(cls, name: str, definition: Avro) -> Self:
        parsed: Any = parse_schema(definition)
        return cls(name, parsed, parsed["__named_schemas"])

    def resolve(self, node: Avro) -> Avro:
        return self.types.get(node, node) if isinstance(node, str) else node


def transitive_incompatibilities(versions: Sequence[Side]) -> Iterator[tuple[str, str, Finding]]:
    """Compares all pairs of versions of a record, oldest first, and yields (newer, older, finding)."""
    for old, new in combinations(versions, 2):
        for finding in incompatibilities(old, new):
            yield new.name, old.name, finding


def incompatibilities(old: Side, new: Side) -> list[Finding]:
    """Returns what keeps either version from reading the other's data; empty if they are fully compatible."""
    found = [
        *_Resolution(new, old, reader_is_new=True).check(new.schema, old.schema, ""),
        *_Resolution(old, new, reader_is_new=False).check(old.schema, new.schema, ""),
        *_ambiguities(old, new),
    ]
    return list({(finding.field, finding.instead): finding for finding in found}.values())


class _Resolution:
    """Applies Avro's resolution rules for one direction: can `reader` read what `writer` wrote?

    Either may be the newer version; the sentences always describe the change from old to new.
    """

    def __init__(self, reader: Side, writer: Side, *, reader_is_new: bool) -> None:
        self._reader = reader
        self._writer = writer
        self._reader_is_new = reader_is_new
        self._inside: set[str] = set()

    def check(self, reader: Avro, writer: Avro, path: str) -> Iterator[Finding]:
        reader, writer = self._reader.resolve(reader), self._writer.resolve(writer)
        match reader, writer:
            case _, list():
                yield from self._written_union(reader, writer, path)
            case list(), _:
                yield from self._read_union(reader, writer, path)
            case {"type": "record"}, {"type": "record"}:
                yield from self._names(reader, writer, path)
                yield from self._fields(reader, writer, path)
            case {"type": "enum"}, {"type": "enum"}:
                yield from self._names(reader, writer, path)
                yield from self._symbols(reader, writer, path)
            case {"type": "fixed"}, {"type": "fixed"}:
                yield from self._names(reader, writer, path)
                if reader["size"] != writer["size"]:
                    yield self._another_type(reader, writer, path)
            case {"type": "array"}, {"type": "array"}:
                yield from self.check(reader["items"], writer["items"], f"{path}[]")
            case {"type": "map"}, {"type": "map"}:
                yield from self.check(reader["values"], writer["values"], f"{path}{{}}")
            case _ if not _readable(reader, writer):
                yield self._another_type(reader, writer, path)

    def _written_union(self, reader: Avro, writer: list[Avro], path: str) -> Iterator[Finding]:
        for branch in writer:
            if findings := list(self.check(reader, branch, path)):
                kinds = [_kind(self._reader.resolve(b)) for b in (reader if isinstance(reader, list) else [reader])]
                alike = _kind(self._writer.resolve(branch)) in kinds
                yield from findings if alike else [self._another_type(reader, writer, path)]

    def _read_union(self, reader: list[Avro], writer: Avro, path: str) -> Iterator[Finding]:
        answers = [(self._reader.resolve(branch), list(self.check(branch, writer, path))) for branch in reader]
        if all(findings for _, findings in answers):
            alike = (findings for branch, findings in answers if _kind(branch) == _kind(writer))
            yield from next(alike, [self._another_type(reader, writer, path)])

    def _fields(self, reader: Avro, writer: Avro, path: str) -> Iterator[Finding]:
        if reader["name"] in self._inside:  # a recursive type
            return
        self._inside.add(reader["name"])
        written = {field["name"]: field for field in writer["fields"]}
        for field in reader["fields"]:
            source = next((written[n] for n in (field["name"], *field.get("aliases", ())) if n in written), None)
            inner = f"{path}.{field['name']}".lstrip(".")
            if source is not None:
                yield from self.check(field["type"], source["type"], inner)
            elif "default" not in field:
                yield self._no_value(field["name"], writer, inner)
        self._inside.remove(reader["name"])

    def _no_value(self, name: str, writer: Avro, path: str) -> Finding:
        reader_name, writer_name = self._reader.name, self._writer.name
        if self._reader_is_new:
            return Finding(
                path,
                f"it is new in {reader_name} and has no default, so events of {writer_name} have no value for it.",
                f"Give it a default that is true of old events. {NEW_EVENT}",
            )
        if renamed := next((f["name"] for f in writer["fields"] if name in f.get("aliases", ())), None):
            return Finding(
                path,
                f"{writer_name} calls it {renamed}. The alias helps new readers only: those of {reader_name} look for "
                "the old name and have no default for it.",
                f"A field without a default keeps its name forever. {NEW_EVENT}",
            )
        return Finding(
            path,
            f"it is gone in {writer_name}, and readers of {reader_name} have no default for it.",
            f"A field without a default stays forever: put it back. {NEW_EVENT}",
        )

    def _another_type(self, reader: Avro, writer: Avro, path: str) -> Finding:
        old, new = (writer, reader) if self._reader_is_new else (reader, writer)
        return Finding(
            path,
            f"it was {_described(old)} and is {_described(new)}, and {self._reader.name} cannot read what "
            f"{self._writer.name} wrote.",
            f"Keep the type, and add a field of another name with a default. {NEW_EVENT}",
        )

    def _symbols(self, reader: Avro, writer: Avro, path: str) -> Iterator[Finding]:
        unknown = [symbol for symbol in writer["symbols"] if symbol not in reader["symbols"]]
        if unknown and "default" not in reader:
            yield Finding(
                path,
                f"readers of {self._reader.name} do not know {', '.join(unknown)}, and the enum has no default.",
                "An enum without a default keeps its symbols forever. For values that may grow, use a string "
                "and list the values in its doc.",
            )

    def _names(self, reader: Avro, writer: Avro, path: str) -> Iterator[Finding]:
        # An alias would not help: readers of the older version do not have it.
        if reader["name"] != writer["name"]:
            old, new = (writer, reader) if self._reader_is_new else (reader, writer)
            yield Finding(path, f"the type {old['name']} is now called {new['name']}.", f"Keep its name. {NEW_EVENT}")


def _ambiguities(old: Side, new: Side) -> Iterator[Finding]:
    """Finds changes that Avro accepts although readers could then see different things in the same bytes."""
    for name in old.types.keys() & new.types.keys():
        before = {field["name"]: field for field in old.types[name].get("fields", ())}
        after = {field["name"]: field for field in new.types[name].get("fields", ())}
        for field in after.values():
            kept = before.get(field["name"], {})
            if "default" in kept and kept["default"] != field.get("default", kept["default"]):
                yield Finding(
                    field["name"],
                    f"its default was {kept['default']!r} in {old.name} and is {field['default']!r} in {new.name}: "
                    "where it is left out, two readers see different values.",
                    "Keep the default.",
                )
            for alias in field.get("aliases", ()):
                if alias in after or (alias in before and field["name"] in before):
                    yield Finding(
                        field["name"],
                        f"its alias {alias} is also a field next to it in {new.name if alias in after else old.name}: "
                        "Avro implementations disagree on which of the two is read.",
                        "Drop the alias or the other field.",
                    )


def _readable(reader: Avro, writer: Avro) -> bool:
    return _kind(reader) == _kind(writer) or _kind(reader) in PROMOTIONS.get(_kind(writer), ())


def _kind(schema: Avro) -> str:
    return str(schema["type"] if isinstance(schema, dict) else schema)


def _described(schema: Avro) -> str:
    match schema:
        case list():
            return " or ".join(map(_described, schema))
        case {"type": "fixed", "name": name, "size": size}:
            return f"{name} of {size} bytes"
        case {"type": "record" | "enum", "name": name}:
            return str(name)
        case {"type": "array", "items": items}:
            return f"array of {_described(items)}"
        case {"type": "map", "values": values}:
            return f"map of {_described(values)}"
        case _:
            return _kind(schema)
