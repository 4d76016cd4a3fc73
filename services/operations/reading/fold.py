"""Folds the streams of a store into rows, one stream after the other, so that only one of them is in memory."""

from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, NamedTuple

import asyncpg

from services.operations.reading.row_builders import RowBuilder
from services.operations.reading.stores import Store
from shared.messaging.consumer import TRANSIENT
from shared.messaging.incoming import ROW_COLUMNS, Incoming
from shared.schemas.codec import UnknownSchema
from shared.store.database import Pool

EVENTS_PER_QUERY = 5_000
STREAMS_PER_QUERY = 200
READ_ALL = f"""
SELECT {ROW_COLUMNS} FROM events WHERE (stream_id, version) > ($1, $2) ORDER BY stream_id, version LIMIT $3
"""
READ_STREAMS = f"""
SELECT {ROW_COLUMNS} FROM events
WHERE stream_id = ANY($1::text[]) AND version <= coalesce($2, version) ORDER BY stream_id, version
"""


async def read_all_streams(pool: Pool, after: str = "") -> AsyncIterator[Sequence[asyncpg.Record]]:
    """Yields every event in chunks, stream by stream, each in order of versions; with `after`, the streams after it."""
    version = 2**31 - 1
    while rows := await pool.fetch(READ_ALL, after, version, EVENTS_PER_QUERY):
        yield rows
        after, version = rows[-1]["stream_id"], rows[-1]["version"]


async def read_streams(
    pool: Pool, streams: Sequence[str], up_to: int | None = None
) -> AsyncIterator[Sequence[asyncpg.Record]]:
    """Yields the events of these streams in chunks, stream by stream; with `up_to`, up to that version."""
    for start in range(0, len(streams), STREAMS_PER_QUERY):
        yield await pool.fetch(READ_STREAMS, streams[start : start + STREAMS_PER_QUERY], up_to)


class SetAside(NamedTuple):
    """An event that could not be read or applied. It is a dead letter of the live view, which lacks it as well."""

    stream_id: str
    version: int
    reason: str

    @classmethod
    def because(cls, error: Exception, stream_id: str, version: int) -> "SetAside":
        return cls(stream_id, version, f"{type(error).__name__}: {error}")


@dataclass(slots=True)
class FoldedBatch:
    """The rows of the streams that were completed by a chunk of events."""

    rows: list[tuple[str, Any]] = field(default_factory=list)
    events: int = 0
    streams: list[str] = field(default_factory=list)
    cursor: str = ""
    """The last complete stream: an interrupted fold continues after it."""
    aside: list[SetAside] = field(default_factory=list)

    def complete(self, stream: str, builder: RowBuilder) -> None:
        if stream:  # it is empty before the first
            self.rows += builder.finish()
            self.streams.append(stream)
            self.cursor = stream


async def fold_streams(
    store: Store,
    builders: Sequence[RowBuilder],
    chunks: AsyncIterator[Sequence[asyncpg.Record]],
    until: datetime | None = None,
) -> AsyncIterator[list[FoldedBatch]]:
    """Yields for each chunk one batch per builder. Every event is read and decoded once for all builders.

    With `until`, rows are as they were at that moment: a stream's past ends before its first event dated later.
    """
    fold = _Fold(store, builders, until)
    async for chunk in chunks:
        yield await fold.take(chunk)
    yield fold.finish()


class _Fold:
    def __init__(self, store: Store, builders: Sequence[RowBuilder], until: datetime | None) -> None:
        self._decoder = store.decoder
        self._topic = store.decider.topic
        self._builders = builders
        self._until = until
        self._stream = ""
        self._is_over = False
        """The rest of the stream is dated later than `until`."""

    async def take(self, chunk: Sequence[asyncpg.Record]) -> list[FoldedBatch]:
        batches = [FoldedBatch(events=len(chunk)) for _ in self._builders]
        feeds = [(builder.feed, batch.aside) for builder, batch in zip(self._builders, batches, strict=True)]
        for row in chunk:
            stream_id, version, _, time, *_ = row
            if stream_id != self._stream:
                self._complete_stream(batches)
                self._stream, self._is_over = stream_id, False
            if self._until is not None and (self._is_over or time > self._until):
                self._is_over = True
                continue
            try:
                message = self._read(row)
            except Exception as error:
                if (learned := await self._read_again(row, error, batches)) is None:
                    continue
                message = learned
            for feed, aside in feeds:
                try:
                    feed(message)
                except Exception as error:  # a dead letter of the live view
                    aside.append(SetAside.because(error, stream_id, version))
        return batches

    def finish(self) -> list[FoldedBatch]:
        batches = [FoldedBatch() for _ in self._builders]
        self._complete_stream(batches)
        return batches

    def _complete_stream(self, batches: Sequence[FoldedBatch]) -> None:
        for builder, batch in zip(self._builders, batches, strict=True):
            batch.complete(self._stream, builder)

    def _read(self, row: asyncpg.Record) -> Incoming:
        """Decodes the event; raises `UnknownSchema` if its schema has not been met before."""
        value = row[-1]
        data = self._decoder.decode_known(value)
        return Incoming.from_row(row, self._decoder.type_of(value), data, self._topic)

    async def _read_again(
        self, row: asyncpg.Record, error: Exception, batches: Sequence[FoldedBatch]
    ) -> Incoming | None:
        """Learns the schema and reads the event; sets it aside if it cannot be read, as the live view did."""
        try:
            if not isinstance(error, UnknownSchema):
                raise error
            await self._decoder.decode(row["value"])
            return self._read(row)
        except TRANSIENT:
            raise
        except Exception as unreadable:
            for batch in batches:
                batch.aside.append(SetAside.because(unreadable, row["stream_id"], row["version"]))
            return None
