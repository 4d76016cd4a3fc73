"""Writes docs/events.md, the catalogue of events, from `schemas/`, the services' wiring and the golden archive."""

import json
from collections.abc import Iterable, Iterator
from importlib.resources import files
from pathlib import Path
from typing import Any

from infra.cli.reference.schema_changes import history, type_words
from infra.cli.reference.wiring import example_of, readers, written_by
from infra.settings import Settings
from services.shop.services import shop_services
from shared.messaging.topics import Topic, declared_topics
from shared.schemas.contract.event_schemas import ROOT, EventSchema, Schemas, load_schemas
from shared.schemas.contract.files import SHARED_TYPES, read_files
from shared.service import Service

MARK = "<!-- events -->\n"
NOBODY = "none of these services"


def page(examples: Path | None = None) -> str:
    """Returns the page; `examples` is a folder like the golden archive, with one file for each version of an event."""
    before, _, after = files(__package__).joinpath("events_page.md").read_text().partition(MARK)
    catalogue = _Catalogue(load_schemas(), shop_services(Settings.load()), examples)
    return before + "\n".join(line for part in catalogue.parts() for line in part) + "\n" + after


class _Catalogue:
    def __init__(self, schemas: Schemas, services: list[Service], examples: Path | None) -> None:
        self._schemas = schemas
        self._services = services
        self._examples = examples
        self._topics = [topic for topic in declared_topics() if topic.namespace]

    def parts(self) -> Iterator[Iterable[str]]:
        yield ["## Topics and services", "", "```mermaid", "flowchart LR", *self._diagram(), "```", ""]
        yield ["| topic | what | written by | read by |", "|---|---|---|---|", *map(self._topic_row, self._topics)]
        for topic in self._topics:
            if records := self._records(topic):
                yield ["", f"## {topic.name}", "", topic.about]
                yield from map(self._event, records)
        yield ["", "## Shared types"]
        for file in read_files(ROOT):
            if file.folder == SHARED_TYPES:
                yield ["", f"### {file.name}", "", file.definition["doc"], "", *_fields(file.definition)]

    def _diagram(self) -> Iterator[str]:
        for service in self._services:
            yield f"  {service.name}([{service.name}])"
        for topic in self._topics:
            node = topic.name.replace(".", "_")
            yield f"  {node}[/{topic.name}/]"
            yield from (f"  {service} --> {node}" for service in self._writers(topic))
            yield from (f"  {node} --> {service}" for service in self._readers(topic))

    def _topic_row(self, topic: Topic) -> str:
        writers, read = ", ".join(self._writers(topic)), ", ".join(self._readers(topic))
        return f"| `{topic.name}` | {topic.about} | {writers or NOBODY} | {read or NOBODY} |"

    def _writers(self, topic: Topic) -> list[str]:
        return [s.name for s in self._services if topic.name in (s.decider.topic, *s.documents)]

    def _readers(self, topic: Topic) -> list[str]:
        return [s.name for s in self._services if topic.name in s.followed]

    def _records(self, topic: Topic) -> list[list[EventSchema]]:
        """Returns the events of a topic by name, current ones first, then retired ones."""
        records = [versions for versions in self._schemas.records.values() if versions[-1].topic == topic.name]
        return sorted(records, key=lambda versions: (self._is_retired(versions[-1].record), versions[-1].type))

    def _is_retired(self, record: str) -> bool:
        return record in self._schemas.upcasters

    def _event(self, versions: list[EventSchema]) -> Iterator[str]:
        newest, example = versions[-1], example_of(versions[-1], self._examples)
        yield from ["", f"### {self._heading(newest.record)}", "", newest.definition["doc"], ""]
        yield self._successors(newest.record) if self._is_retired(newest.record) else self._parties(newest, example)
        yield from ["", *_fields(newest.definition), ""]
        yield from (f"- Version {version}: {change}." for version, change in history(versions))
        if example is not None:
            yield from ["", "```json", json.dumps(example, indent=2, ensure_ascii=False), "```"]

    def _heading(self, record: str) -> str:
        return record.rpartition(".")[2] + (" (retired)" if self._is_retired(record) else "")

    def _parties(self, schema: EventSchema, example: dict[str, Any] | None) -> str:
        writers = [service.name for service in self._services if written_by(service, schema)]
        read = [f"{r.service} ({r.how})" for s in self._services for r in readers(s, schema, example)]
        return f"Written by: {', '.join(writers) or NOBODY}. Read by: {', '.join(read) or NOBODY}."

    def _successors(self, record: str) -> str:
        links = []
        while self._is_retired(record):
            record = self._schemas.upcasters[record].into
            anchor = self._heading(record).lower().replace(" ", "-").strip("()").replace("(", "")
            links.append(f"[{record.rpartition('.')[2]}](#{anchor})")
        return f"No longer written. Read as {', and that as '.join(links)}."


def _fields(definition: dict[str, Any]) -> Iterator[str]:
    yield from ["| field | type | meaning |", "|---|---|---|"]
    for field in definition["fields"]:
        default = f", default `{json.dumps(field['default'])}`" if "default" in field else ""
        yield f"| `{field['name']}` | {type_words(field['type'])}{default} | {field['doc']} |"
