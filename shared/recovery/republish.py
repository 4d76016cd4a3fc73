"""Republishes a lost topic from its event store. The other direction is `refill.py`."""

import asyncpg

from shared.envelope import Recorded, cloud_event_headers, pack_headers
from shared.errors import OperatorError
from shared.messaging.relay import open_producer, publish, relay_lock
from shared.messaging.topic_reader import is_empty
from shared.settings import Settings
from shared.store.database import Pool
from shared.store.event_store import EVENT_COLUMNS

EVENTS_PER_QUERY = 5_000


async def republish(pool: Pool, settings: Settings, service: str, topic: str, source: str) -> int:
    """Publishes the whole store to its empty topic, in position order, and returns the number of events.

    It holds the relay's lock, so that no new event overtakes an old one. Every record has the same key, value, headers
    and timestamp as the one that was lost.
    """
    async with (
        pool.acquire() as connection,
        relay_lock(connection, service),
        open_producer(settings) as producer,
        # One snapshot of the store. Events committed later are in the outbox, and follow when the relay has its lock
        # again. Events that are in the outbox already are published here, and must not be published twice.
        connection.transaction(isolation="repeatable_read"),
    ):
        if not await is_empty(settings, topic):
            raise OperatorError(
                f"{topic} is not empty: republishing would put every event in it a second time.",
                "To republish it anyway, delete the topic and create it again with: till topics",
            )
        sent, after = 0, 0
        while rows := await connection.fetch(
            f"SELECT position, {EVENT_COLUMNS} FROM events WHERE position > $1 ORDER BY position LIMIT $2",
            after,
            EVENTS_PER_QUERY,
        ):
            after = rows[-1][0]
            unsent = [_message(row, topic, source) for row in rows]
            while unsent:
                acknowledged, failure = await publish(producer, unsent)
                if failure:
                    raise failure
                done = set(acknowledged)
                unsent = [message for message in unsent if message[0] not in done]
            sent += len(rows)
        await connection.execute("DELETE FROM outbox WHERE topic = $1", topic)
        return sent


def _message(row: asyncpg.Record, topic: str, source: str) -> tuple[int, str, str, bytes, bytes, object]:
    event = Recorded(*row[1:])
    headers = pack_headers(cloud_event_headers(event, source))
    return row[0], topic, event.stream_id, event.value, headers, event.time
