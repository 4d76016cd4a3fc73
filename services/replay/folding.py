"""Rows of views, folded stream by stream from a store: each row is made once, and only one stream is in memory."""

from collections.abc import AsyncIterator, Sequence
from dataclasses import asdict, dataclass, field
from datetime import datetime
from typing import Any, NamedTuple, Protocol

import asyncpg

from services.replay.targets import Store, Stores, Target
from shared.codec import UnknownSchema
from shared.consumer import TRANSIENT, Incoming
from shared.database import Pool
from shared.decider import Decider
from shared.views import RowView

CHUNK = 5_000
SOME = 200
READ = """
SELECT stream_id, version, event_id::text, time, correlation_id, traceparent, value FROM events
WHERE (stream_id, version) > ($1, $2) ORDER BY stream_id, version LIMIT $3
"""
READ_SOME = """
SELECT stream_id, version, event_id::text, time, correlation_id, traceparent, value FROM events
WHERE stream_id = ANY($1::text[]) AND version <= coalesce($2, version) ORDER BY stream_id, version
"""


class SetAside(NamedTuple):
    """An event that could not be read or applied. The live view is without it too: it is a dead letter there."""

    stream_id: str
    version: int
    reason: str


class Rows(Protocol):
    """What one stream comes to in a view."""

    def feed(self, message: Incoming) -> None: ...

    def finish(self) -> list[tuple[str, Any]]:
        """Keys and rows, complete; ready for the next stream."""
        ...


class OfEvents:
    def __init__(self, view: RowView[Any]) -> None:
        self._view = view
        self._rows: dict[str, Any] = {}
        self._reached: dict[str, int] = {}

    def feed(self, message: Incoming) -> None:
        key = self._view.key_of(message)
        row = self._view.change(self._rows.get(key), message)
        if row is not None:
            self._rows[key] = row
            self._reached[key] = message.version

    def finish(self) -> list[tuple[str, Any]]:
        for key, row in self._rows.items():
            row.version = self._reached[key]
        rows = list(self._rows.items())
        self._rows, self._reached = {}, {}
        return rows


class OfDocuments:
    """Of what a service announces beside its events: the latest, as the state of the stream has it."""

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
        if (last := self._last) and self._writer.announce:
            for announced in self._writer.announce(self._state, last.version):
                if announced.topic == self._topic:
                    message = _announced(announced.document, last, self._topic)
                    key = self._view.key_of(message)
                    if (row := self._view.change(rows.get(key), message)) is not None:
                        row.version = last.version
                        rows[key] = row
        self._state, self._last = self._writer.initial, None
        return list(rows.items())


def _announced(document: Any, last: Incoming, topic: str) -> Incoming:
    """As a reader who knows only its schema has it."""
    return Incoming(
        type=type(document).__name__,
        stream_id=last.stream_id,
        version=last.version,
        data=asdict(document),
        event_id=last.event_id,
        time=last.time,
        correlation_id=last.correlation_id,
        traceparent=last.traceparent,
        topic=topic,
        partition=last.partition,
        offset=last.offset,
    )


@dataclass(slots=True)
class Folded:
    rows: list[tuple[str, Any]] = field(default_factory=list)
    events: int = 0
    streams: list[str] = field(default_factory=list)
    """That are complete with these rows."""
    cursor: str = ""
    """The last stream that is complete: what is left comes after it."""
    aside: list[SetAside] = field(default_factory=list)

    def close(self, stream: str, rows: Rows) -> None:
        """The stream is complete. None is before the first."""
        if stream:
            self.rows += rows.finish()
            self.streams.append(stream)
            self.cursor = stream


def source_of(target: Target, stores: Stores) -> tuple[Store, Rows]:
    """The store that holds what the view is made of, and how its streams become rows."""
    [topic] = target.projection.topics
    for store in stores.values():
        if topic == store.service.decider.topic:
            # Decoded as the view's own service would: its own events as their classes, others by their schema alone.
            reading = stores[target.service.name].memory
            return Store(store.service, store.pool, reading), OfEvents(target.view)
        if topic in store.service.documents:
            return store, OfDocuments(target.view, topic, store.service.decider)
    raise LookupError(topic)


async def in_streams(pool: Pool, after: str = "") -> AsyncIterator[Sequence[asyncpg.Record]]:
    """Every event, stream by stream and each in order."""
    version = 2**31 - 1
    while rows := await pool.fetch(READ, after, version, CHUNK):
        yield rows
        after, version = rows[-1]["stream_id"], rows[-1]["version"]


async def of_streams(
    pool: Pool, streams: Sequence[str], version: int | None = None
) -> AsyncIterator[Sequence[asyncpg.Record]]:
    """Of some of them, up to a version where one is given."""
    for start in range(0, len(streams), SOME):
        yield await pool.fetch(READ_SOME, streams[start : start + SOME], version)


async def folded(
    store: Store,
    several: Sequence[Rows],
    chunks: AsyncIterator[Sequence[asyncpg.Record]],
    until: datetime | None = None,
) -> AsyncIterator[list[Folded]]:
    """What each of `several` makes of them; every event is read once.

    With `until`, as it was at that moment: a stream's past ends before its first event that was still to come.
    """
    topic = store.service.decider.topic
    known, decode, type_of = store.memory.decode_known, store.memory.decode, store.memory.type_of
    current, is_over = "", False
    async for chunk in chunks:
        done = [Folded(events=len(chunk)) for _ in several]
        feeds = [(rows.feed, into.aside) for rows, into in zip(several, done, strict=True)]
        for stream_id, version, event_id, time, correlation_id, traceparent, value in chunk:
            if stream_id != current:
                for rows, into in zip(several, done, strict=True):
                    into.close(current, rows)
                current, is_over = stream_id, False
            is_over = is_over or (until is not None and time > until)
            if is_over:
                continue
            try:
                try:
                    data = known(value)
                except UnknownSchema:
                    data = await decode(value)
            except TRANSIENT:
                raise
            except Exception as error:  # as with the live view, where it is a dead letter
                for into in done:
                    into.aside.append(_aside(stream_id, version, error))
                continue
            message = Incoming(
                type_of(value), stream_id, version, data, event_id, time, correlation_id, traceparent, topic, -1, -1
            )
            for feed, aside in feeds:
                try:
                    feed(message)
                except Exception as error:  # a dead letter too
                    aside.append(_aside(stream_id, version, error))
        yield done
    last = [Folded() for _ in several]
    for rows, into in zip(several, last, strict=True):
        into.close(current, rows)
    yield last


def _aside(stream_id: str, version: int, error: Exception) -> SetAside:
    return SetAside(stream_id, version, f"{type(error).__name__}: {error}")
