"""Who writes and who reads each event: asked of the services' own wiring, so that it cannot be out of date."""

import inspect
import json
import pkgutil
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

import services

if TYPE_CHECKING:  # who only wants to ask later does not pay now for all that services are made of
    from shared.consumer import Incoming
    from shared.schemas import EventSchema
    from shared.service import Service
    from shared.settings import Settings

GOLDEN = Path(__file__).parents[1] / "tests" / "golden"


@dataclass(frozen=True)
class Reader:
    service: str
    how: str
    """`view products`, or the commands that the event leads to."""


def declared_services(settings: "Settings") -> "list[Service]":
    """What each `services/<name>/wiring.py` puts together."""
    from shared.service import Service

    found: list[Service] = []
    for package in pkgutil.iter_modules(services.__path__, "services."):
        if package.ispkg and find_spec(name := f"{package.name}.wiring"):
            wiring = import_module(name)
            for value in vars(wiring).values():
                if isinstance(value, Service):
                    found.append(value)
                elif inspect.isfunction(value) and inspect.signature(value).return_annotation is Service:
                    found.append(value(settings))
    return found


def written_by(service: "Service", schema: "EventSchema") -> bool:
    kinds = {service.decider.topic: service.decider.events} | {t: (kind,) for t, kind in service.documents.items()}
    return schema.type in {kind.__name__ for kind in kinds.get(schema.topic, ())}


def readers(service: "Service", schema: "EventSchema", example: dict[str, Any] | None) -> Iterator[Reader]:
    """A view reads all of its topics. A reaction is a pure function: it is asked what it makes of an example."""
    for view in service.projections:
        if schema.topic in view.topics:
            yield Reader(service.name, f"view `{view.name}`")
    for reaction in service.reactions:
        if schema.topic in reaction.topics and example is not None:
            commands = [type(command).__name__ for _, command in reaction.react(_message(schema, example))]
            if commands:
                yield Reader(service.name, ", ".join(f"`{command}`" for command in dict.fromkeys(commands)))
    if schema.topic in getattr(service, "follows", ()):
        yield Reader(service.name, "follows it")


def topics_read(service: "Service") -> set[str]:
    in_views = {topic for view in service.projections for topic in view.topics}
    in_reactions = {topic for reaction in service.reactions for topic in reaction.topics}
    return in_views | in_reactions | set(getattr(service, "follows", ()))


def example_of(schema: "EventSchema") -> dict[str, Any] | None:
    """As it was first written, out of the golden archive; None before its release."""
    file = GOLDEN / f"{schema}.json"
    return dict(json.loads(file.read_text())["written"]) if file.exists() else None


def _message(schema: "EventSchema", example: dict[str, Any]) -> "Incoming":
    from shared.consumer import Incoming

    return Incoming(
        type=schema.type,
        stream_id="example:1",
        version=1,
        data=example,
        event_id="",
        time=datetime.fromtimestamp(0, UTC),
        correlation_id="",
        traceparent="",
        topic=schema.topic,
        partition=0,
        offset=0,
    )
