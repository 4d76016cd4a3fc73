"""Finds the writers and readers of each event in the wiring of the services, so that the page is never out of date."""

import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:  # importing the services is slow
    from shared.messaging.incoming import Incoming
    from shared.schemas.contract.event_schemas import EventSchema
    from shared.service import Service


@dataclass(frozen=True)
class Reader:
    service: str
    how: str
    """`view products`, or the commands that the event leads to."""


def written_by(service: "Service", schema: "EventSchema") -> bool:
    kinds = {service.decider.topic: service.decider.events} | {t: (kind,) for t, kind in service.documents.items()}
    return schema.type in {kind.__name__ for kind in kinds.get(schema.topic, ())}


def readers(service: "Service", schema: "EventSchema", example: dict[str, Any] | None) -> Iterator[Reader]:
    """Yields the readers of an event. A view reads all of its topics; a reaction is called with an example."""
    for view in service.projections:
        if schema.topic in view.topics:
            yield Reader(service.name, f"view `{view.name}`")
    for reaction in service.reactions:
        if schema.topic in reaction.topics and example is not None:
            commands = [type(command).__name__ for _, command in reaction.react(_message(schema, example), 0)]
            if commands:
                yield Reader(service.name, ", ".join(f"`{command}`" for command in dict.fromkeys(commands)))
    if schema.topic in service.follows:
        yield Reader(service.name, "follows it")


def example_of(schema: "EventSchema", folder: Path | None) -> dict[str, Any] | None:
    """Returns the example in `folder` for this version of an event; None if there is none."""
    file = folder / f"{schema}.json" if folder else None
    return dict(json.loads(file.read_text())["written"]) if file and file.exists() else None


def _message(schema: "EventSchema", example: dict[str, Any]) -> "Incoming":
    from shared.messaging.incoming import Incoming

    return Incoming(schema.type, "example:1", 1, example, topic=schema.topic)
