"""Every version of every event schema, with its topic and subject, and the plan for reading it today."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from importlib.resources import files
from importlib.resources.abc import Traversable
from typing import Any, NamedTuple

from fastavro.schema import parse_schema

from schemas.upcasters import UPCASTERS
from shared.errors import OperatorError
from shared.schemas.contract.files import SchemaFile, read_files, self_contained, topic_namespaces
from shared.schemas.contract.upcasting import Upcast, Upcasters, upcast_chain

ROOT = files("schemas")


@dataclass(frozen=True)
class EventSchema:
    """One version of one event (or document) record."""

    folder: str
    record: str
    """Full name: `tillroll.cart.ItemAdded`."""
    version: int
    topic: str
    definition: dict[str, Any]
    """The Avro definition with shared types inlined, so it needs no other file."""

    def __str__(self) -> str:
        return f"{self.folder}/{self.type}.v{self.version}"

    @property
    def type(self) -> str:
        return self.record.rpartition(".")[2]

    @property
    def subject(self) -> str:
        """The registry's subject, by TopicRecordNameStrategy."""
        return f"{self.topic}-{self.record}"

    @cached_property
    def text(self) -> str:
        """The JSON text that is registered; the same schema always has the same text."""
        return json.dumps(self.definition, separators=(",", ":"))

    @cached_property
    def parsed(self) -> Any:
        return parse_schema(json.loads(self.text))


class ReadingPlan(NamedTuple):
    """The steps from bytes written with one schema to the record that today's code uses."""

    record: str
    """Full name of the resulting record: the written one, or the one that replaced it."""
    writer: Any
    """The schema that wrote the bytes."""
    reader: Any = None
    """The newest version of the same record; None if `schemas/` does not have the record."""
    upcast: Upcast | None = None
    """Converts the fields of a retired record into those of its replacement."""

    @property
    def is_old(self) -> bool:
        """Tells whether the schema has been replaced since, by a newer version or by another event."""
        return self.upcast is not None or (self.reader is not None and self.reader != self.writer)


class Schemas:
    """All schemas of `schemas/`, and the upcasters that retire some of them."""

    def __init__(self, schemas: list[EventSchema], upcasters: Upcasters | None = None) -> None:
        self.all = schemas
        self.upcasters = upcasters or {}
        self._versions: dict[str, list[EventSchema]] = {}
        for schema in sorted(schemas, key=lambda s: s.version):
            self._versions.setdefault(schema.record, []).append(schema)

    def __contains__(self, record: object) -> bool:
        return record in self._versions

    @property
    def records(self) -> Mapping[str, list[EventSchema]]:
        """The versions of each record by its full name, oldest first."""
        return self._versions

    def newest(self, record: str) -> EventSchema:
        return self._versions[record][-1]

    def newest_of_topic(self, topic: str) -> list[EventSchema]:
        """Returns the newest version of each record that the topic carries."""
        return [versions[-1] for versions in self._versions.values() if versions[-1].topic == topic]

    def plan_reading(self, text: str) -> ReadingPlan:
        """Plans how to read bytes written with this schema, which may be older or newer than ours, or foreign."""
        writer = parse_schema(json.loads(text))
        if not isinstance(writer, dict) or writer["type"] != "record":
            raise ValueError("its schema is not a record")
        record = writer["name"]
        reader = self.newest(record).parsed if record in self else None
        current, upcast = upcast_chain(self.upcasters, record)
        return ReadingPlan(current, writer, reader, upcast)


def load_schemas(root: Traversable = ROOT, upcasters: Upcasters = UPCASTERS) -> Schemas:
    """Loads every schema file, or raises an OperatorError that names the faulty one."""
    topics = topic_namespaces(root)
    return Schemas(
        [
            EventSchema(file.folder, file.record, file.version, _topic(file, topics), definition)
            for file, definition in self_contained(read_files(root))
        ],
        upcasters,
    )


def _topic(file: SchemaFile, topics: Mapping[str, str]) -> str:
    if file.namespace not in topics:
        raise OperatorError(
            f"{file}: no topic carries the namespace {file.namespace}.", "Name it in schemas/topics.toml."
        )
    return topics[file.namespace]
