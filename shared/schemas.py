"""The Avro files of `schemas/`: one a record and version, named types resolved, each with its topic and subject."""

import json
import tomllib
from dataclasses import dataclass
from functools import cached_property
from importlib.resources import files
from importlib.resources.abc import Traversable
from typing import Any

import fastavro
from fastavro.schema import parse_schema

from shared.errors import OperatorError

ROOT = files("schemas")
SHARED_TYPES = "shared"


@dataclass(frozen=True)
class EventSchema:
    folder: str
    record: str
    """Full name: `tillroll.cart.ItemAdded`."""
    version: int
    topic: str
    definition: dict[str, Any]
    """Self-contained: the shared types written out where they first occur."""

    @property
    def type(self) -> str:
        return self.record.rpartition(".")[2]

    @property
    def subject(self) -> str:
        """TopicRecordNameStrategy."""
        return f"{self.topic}-{self.record}"

    @cached_property
    def text(self) -> str:
        """What the registry keeps; the same schema is always the same text."""
        return json.dumps(self.definition, separators=(",", ":"))

    @cached_property
    def parsed(self) -> Any:
        return parse_schema(json.loads(self.text))


class Schemas:
    def __init__(self, schemas: list[EventSchema]) -> None:
        self.all = schemas
        self._newest: dict[str, EventSchema] = {}
        for schema in sorted(schemas, key=lambda s: s.version):
            self._newest[schema.record] = schema

    def __contains__(self, record: object) -> bool:
        return record in self._newest

    def newest(self, record: str) -> EventSchema:
        return self._newest[record]

    def of_topic(self, topic: str) -> list[EventSchema]:
        """The newest version of each record that the topic carries."""
        return [schema for schema in self._newest.values() if schema.topic == topic]


def topic_namespaces() -> dict[str, str]:
    declared = tomllib.loads((ROOT / "topics.toml").read_text())["topics"]
    return {topic["namespace"]: name for name, topic in declared.items() if "namespace" in topic}


def load_schemas(root: Traversable = ROOT) -> Schemas:
    shared_types = {d["namespace"] + "." + d["name"]: d for _, d in _definitions(root / SHARED_TYPES)}
    topics = topic_namespaces()
    schemas = []
    for folder in sorted((f for f in root.iterdir() if f.is_dir()), key=lambda f: f.name):
        for file, definition in _definitions(folder) if folder.name != SHARED_TYPES else []:
            topic = topics.get(definition["namespace"])
            if topic is None:
                raise OperatorError(
                    f"schemas/{folder.name}/{file.name}: no topic carries the namespace {definition['namespace']}.",
                    "Name it in schemas/topics.toml.",
                )
            record = f"{definition['namespace']}.{definition['name']}"
            version = int(file.name.removesuffix(".avsc").rpartition(".v")[2])
            expanded = _expand(definition, shared_types, set())
            schema = EventSchema(folder.name, record, version, topic, expanded)
            _check(schema, file)
            schemas.append(schema)
    return Schemas(schemas)


def _definitions(folder: Traversable) -> list[tuple[Traversable, dict[str, Any]]]:
    found = sorted((f for f in folder.iterdir() if f.name.endswith(".avsc")), key=lambda f: f.name)
    try:
        return [(file, json.loads(file.read_text())) for file in found]
    except json.JSONDecodeError as error:
        raise OperatorError(f"{folder.name}: a schema is not JSON: {error}", "Mend the file.") from error


def _check(schema: EventSchema, file: Traversable) -> None:
    try:
        _ = schema.parsed
    except fastavro.schema.SchemaParseException as error:
        raise OperatorError(f"{file.name} is not valid Avro: {error}", "Mend the file.") from error


def _expand(node: Any, shared_types: dict[str, Any], seen: set[str]) -> Any:
    """Write each shared type out once; further uses keep the name, as Avro wants it."""
    match node:
        case str() if node in shared_types and node not in seen:
            seen.add(node)
            return _expand(shared_types[node], shared_types, seen)
        case dict():
            return {
                key: _expand(value, shared_types, seen) if key in ("type", "items", "fields", "values") else value
                for key, value in node.items()
            }
        case list():
            return [_expand(item, shared_types, seen) for item in node]
        case _:
            return node
