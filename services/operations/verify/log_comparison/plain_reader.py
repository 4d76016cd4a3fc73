"""Reads store and topic the plain way: Kafka's client makes the records, and `cloud_event_headers` says what to expect.

This is what `fast_reader` must agree with; a test compares the two. `till verify` uses the fast one.
"""

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from datetime import datetime

import asyncpg
from aiokafka import ConsumerRecord, TopicPartition

from services.operations.reading.stores import Store
from services.operations.verify.log_comparison.messages import (
    Body,
    Contents,
    Fetched,
    Message,
    Offsets,
    StoredMessage,
)
from shared.envelope import Recorded, cloud_event_headers, millis
from shared.messaging.topic_reader import TopicReader, open_reader
from shared.settings import Settings
from shared.store.event_store import EVENT_COLUMNS

EVENTS_PER_QUERY = 10_000
READ = f"""
SELECT position, {EVENT_COLUMNS} FROM events
WHERE position > $1 AND position <= $2 AND time >= $3 ORDER BY position LIMIT {EVENTS_PER_QUERY}
"""
LOOK_UP = f"""
SELECT position, {EVENT_COLUMNS}
FROM events JOIN unnest($1::text[], $2::int[]) AS wanted (stream_id, version) USING (stream_id, version)
"""


class PlainReader:
    def __init__(self, store: Store, source: str, topic: TopicReader) -> None:
        self._store = store
        self._source = source
        self._topic = topic

    async def read_store(self, last: int, since: datetime) -> AsyncIterator[list[StoredMessage]]:
        position = 0
        while rows := await self._store.pool.fetch(READ, position, last, since):
            yield [(row["stream_id"].encode(), row["position"], self._expected(row)) for row in rows]
            position = rows[-1]["position"]

    async def look_up(
        self, streams: Sequence[str], versions: Sequence[int]
    ) -> dict[tuple[bytes, int], tuple[int, Body]]:
        rows = await self._store.pool.fetch(LOOK_UP, streams, versions)
        return {(r["stream_id"].encode(), r["version"]): (r["position"], self._expected(r)) for r in rows}

    def _expected(self, row: asyncpg.Record) -> Body:
        _, *columns = row
        recorded = Recorded(*columns)
        headers = [(name.encode(), content) for name, content in cloud_event_headers(recorded, self._source)]
        return millis(recorded.time), Contents(recorded.value, headers)

    async def fetch(self, wanted: Offsets) -> Fetched:
        found: Fetched = {}
        ends = await self._topic.ends()
        for number, start in wanted.items():
            found[number] = [], start
            partition = TopicPartition(self._store.decider.topic, number)
            async for _, records in self._topic.read({partition: start}, ends):
                found[number] = [_message(record) for record in records], records[-1].offset + 1
                break
        return found

    def contents(self, body: Body) -> Contents:
        contents: Contents = body[1]
        return contents


def _message(record: ConsumerRecord) -> Message:
    headers = [(name.encode(), content) for name, content in record.headers]
    return record.offset, record.key, (record.timestamp, Contents(record.value, headers))


@asynccontextmanager
async def open_plain_reader(settings: Settings, store: Store, source: str) -> AsyncIterator[PlainReader]:
    async with open_reader(settings, store.decider.topic) as topic:
        yield PlainReader(store, source, topic)
