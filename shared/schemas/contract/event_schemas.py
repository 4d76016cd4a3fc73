"""The contract as `schemas/` has it: every version of every record, its topic and subject, and how it is read today."""

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
from shared.schema_files import SchemaFile, read_files, self_contained, topic_namespaces
from shared.upcasters import Upcast, Upcasters, chain

ROOT = files("schemas")


@dataclass(frozen=True)
class EventSchema:
    folder: str
    record: str
    """Full name: `tillroll.cart.ItemAdded`."""
    version: int
    topic: str
    definition: dict[str, Any]
    """Self-contained: the shared types written out where they first occur."""

    def __str__(self) -> str:
        return f"{self.folder}/{self.type}.v{self.version}"

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


class Reading(NamedTuple):
    """How bytes of one schema become what today's code knows."""

    writer: Any
    reader: Any
    """Newest version of the same record; None where it is not in `schemas/`."""
    upcast: Upcast | None
    record: str
    """What it is then: the same record, or the one that replaced it."""


class Schemas:
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
        """The versions of each record, oldest first."""
        return self._versions

    def newest(self, record: str) -> EventSchema:
        return self._versions[record][-1]

    def of_topic(self, topic: str) -> list[EventSchema]:
        """The newest version of each record that the topic carries."""
        return [versions[-1] for versions in self._versions.values() if versions[-1].topic == topic]

    def reading(self, text: str) -> Reading:
        """Of bytes that were written with this schema, whoever wrote them."""
        writer = parse_schema(json.loads(text))
        if not isinstance(writer, dict) or writer["type"] != "record":
            raise ValueError("its schema is not that of a record")
        record = writer["name"]
        reader = self.newest(record).parsed if record in self else None
        current, upcast = chain(self.upcasters, record)
        return Reading(writer, reader, upcast, current)


def load_schemas(root: Traversable = ROOT, upcasters: Upcasters = UPCASTERS) -> Schemas:
    """Every file, or an OperatorError that names the one that is wrong."""
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
