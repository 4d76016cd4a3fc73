"""Builds the rows of a view from the events of one stream after the other, as the view's own projection would."""

from collections.abc import Sequence
from dataclasses import asdict, replace
from typing import Any, Protocol

from services.operations.reading.stores import Store, Stores
from services.operations.reading.views import Target
from shared.decider import Decider
from shared.messaging.incoming import Incoming
from shared.service import Service
from shared.store.views import RowView


class RowBuilder(Protocol):
    """Takes the events of one stream, then gives the rows they make, and is ready for the next stream."""

    def feed(self, message: Incoming) -> None: ...

    def finish(self) -> list[tuple[str, Any]]:
        """Returns the complete rows of the stream with their keys."""
        ...


class RowsFromEvents:
    """Builds rows of a view that follows the events themselves."""

    def __init__(self, view: RowView[Any]) -> None:
        self._view = view
        self._rows: dict[str, Any] = {}
        self._versions: dict[str, int] = {}

    def feed(self, message: Incoming) -> None:
        key = self._view.key_of(message)
        row = self._view.change(self._rows.get(key), message)
        if row is not None:
            self._rows[key] = row
            self._versions[key] = message.version

    def finish(self) -> list[tuple[str, Any]]:
        for key, row in self._rows.items():
            row.version = self._versions[key]
        rows = list(self._rows.items())
        self._rows, self._versions = {}, {}
        return rows


class RowsFromDocuments:
    """Builds rows of a view that follows the documents that a service announces in addition to its events.

    Only the last document counts, and it follows from the state of the stream, so the events are folded.
    """

    def __init__(self, view: RowView[Any], topic: str, writer: Decider[Any, Any, Any]) -> None:
        self._view = view
        self._topic = topic
        self._writer = writer
        self._state = writer.initial
        self._last: Incoming | None = None

    def feed(self, message: Incoming) -> None:
        self._state = self._writer.evolve(self._state, message.data)
        self._last = message

    def finish(self) -> list[tuple[str, Any]]:
        rows: dict[str, Any] = {}
        for message in self._announced():
            key = self._view.key_of(message)
            if (row := self._view.change(rows.get(key), message)) is not None:
                row.version = message.version
                rows[key] = row
        self._state, self._last = self._writer.initial, None
        return list(rows.items())

    def _announced(self) -> list[Incoming]:
        """Returns the documents that the stream ends with, as a consumer that knows only their schema has them."""
        last = self._last
        if last is None or self._writer.announce is None:
            return []
        return [
            last._replace(type=type(it.document).__name__, data=asdict(it.document), topic=self._topic)
            for it in self._writer.announce(self._state, last.version)
            if it.topic == self._topic
        ]


def find_source(target: Target, services: Sequence[Service], stores: Stores) -> tuple[Store, RowBuilder]:
    """Returns the store that holds what the view is made of, and how its streams become rows."""
    [topic] = target.projection.topics
    for service in services:
        store = stores[service.name]
        if topic == service.decider.topic:
            # Decoded as the view's own service would: its own events as their classes, others by their schema alone.
            decoder = stores[target.service.name].decoder
            return replace(store, decoder=decoder), RowsFromEvents(target.view)
        if topic in service.documents:
            return store, RowsFromDocuments(target.view, topic, service.decider)
    raise LookupError(topic)
