"""docs/events.md: the catalogue of events, out of `schemas/`, the services' wiring and the golden archive."""

import json
from collections.abc import Iterable, Iterator
from importlib.resources import files
from typing import Any

from infra.cli.version_changes import changes
from infra.events import declared_services, example_of, readers, topics_read, written_by
from shared.schema_files import SHARED_TYPES, read_files
from shared.schemas import ROOT, EventSchema, Schemas, load_schemas
from shared.service import Service
from shared.settings import Settings
from shared.topics import Topic, declared_topics
from shared.upcasters import chain

MARK = "<!-- events -->\n"


def page() -> str:
    before, _, after = files(__package__).joinpath("events_page.md").read_text().partition(MARK)
    return before + _Catalogue(load_schemas(), declared_services(Settings.load())).text() + after


class _Catalogue:
    def __init__(self, schemas: Schemas, services: list[Service]) -> None:
        self._schemas = schemas
        self._services = services
        self._topics = [topic for topic in declared_topics() if topic.namespace]

    def text(self) -> str:
        return "\n".join(line for part in self._parts() for line in part) + "\n"

    def _parts(self) -> Iterator[Iterable[str]]:
        yield ["## Topics and services", "", "```mermaid", "flowchart LR"]
        yield self._diagram()
        yield ["```", "", "| topic | what | written by | read by |", "|---|---|---|---|"]
        yield map(self._topic_row, self._topics)
        for topic in self._topics:
            if records := self._records(topic):
                yield ["", f"## {topic.name}", "", topic.about]
                for versions in records:
                    yield self._event(versions)
        yield ["", "## Shared types", ""]
        for file in read_files(ROOT):
            if file.folder == SHARED_TYPES:
                yield [f"### {file.name}", "", file.definition["doc"], "", *_fields(file.definition), ""]

    def _diagram(self) -> Iterator[str]:
        for service in self._services:
            yield f"  {service.name}([{service.name}])"
        for topic in self._topics:
            yield f"  {_node(topic)}[/{topic.name}/]"
            for service in self._writers(topic):
                yield f"  {service} --> {_node(topic)}"
            for service in self._readers(topic):
                yield f"  {_node(topic)} --> {service}"

    def _topic_row(self, topic: Topic) -> str:
        writers = ", ".join(self._writers(topic)) or "none of these services"
        return f"| `{topic.name}` | {topic.about} | {writers} | {', '.join(self._readers(topic))} |"

    def _writers(self, topic: Topic) -> list[str]:
        return [s.name for s in self._services if topic.name in (s.decider.topic, *s.documents)]

    def _readers(self, topic: Topic) -> list[str]:
        return [s.name for s in self._services if topic.name in topics_read(s)]

    def _records(self, topic: Topic) -> list[list[EventSchema]]:
        """Living events first, each kind by name."""
        records = [versions for versions in self._schemas.records.values() if versions[-1].topic == topic.name]
        return sorted(records, key=lambda versions: (versions[-1].record in self._schemas.upcasters, versions[-1].type))

    def _event(self, versions: list[EventSchema]) -> Iterator[str]:
        newest, example = versions[-1], example_of(versions[-1])
        retired = newest.record in self._schemas.upcasters
        yield from ["", f"### {newest.type}{' (retired)' if retired else ''}", "", newest.definition["doc"], ""]
        if retired:
            yield f"No longer written; read as {self._successors(newest.record)}."
        else:
            writers = [service.name for service in self._services if written_by(service, newest)]
            read = [f"{r.service} ({r.how})" for s in self._services for r in readers(s, newest, example)]
            yield f"Written by: {', '.join(writers) or 'none of these services'}. Read by: {', '.join(read) or 'nobody'}."
        yield from ["", *_fields(newest.definition), ""]
        yield from (f"- Version {schema.version}: {change}." for schema, change in changes(versions))
        if example is not None:
            yield from ["", "```json", json.dumps(example, indent=2, ensure_ascii=False), "```"]

    def _successors(self, record: str) -> str:
        names = []
        while record in self._schemas.upcasters:
            record = self._schemas.upcasters[record].into
            names.append(record.rpartition(".")[2])
        return ", and that as ".join(f"[{name}](#{_anchor(name, record in names)})" for name in names)


def _fields(definition: dict[str, Any]) -> Iterator[str]:
    yield from ["| field | type | meaning |", "|---|---|---|"]
    for field in definition["fields"]:
        default = f", default `{json.dumps(field['default'])}`" if "default" in field else ""
        yield f"| `{field['name']}` | {type_name(field['type'])}{default} | {field['doc']} |"
