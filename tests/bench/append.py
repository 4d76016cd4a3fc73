"""Appends of an event and its outbox message by 32 concurrent writers, compared with BEGIN; INSERT; INSERT; COMMIT."""

import asyncio

from uuid_utils import uuid7

from infra.settings import Settings
from shared.envelope import Message, Recorded, cloud_event_headers, now, pack_headers
from shared.store.database import Connection, open_pool
from shared.store.event_store import EventStore, Write
from tests.bench.figures import Figure, side_by_side
from tests.bench.kit.kernel import CONCURRENCY, CUSTOMER, Stopwatch, cart_service, empty

EACH = 400
VALUE = bytes(64)


async def run(settings: Settings) -> list[Figure]:
    async with cart_service(settings):
        pass
    async with await open_pool(settings, "cart", CONCURRENCY + 2) as pool, EventStore(pool) as store:

        async def ours() -> float:
            await empty(pool)
            return await rate(store)

        async def reference() -> float:
            await empty(pool)
            connections = [await pool.acquire() for _ in range(CONCURRENCY)]
            try:
                with Stopwatch() as watch:
                    await asyncio.gather(*(_begin_insert_insert_commit(c) for c in connections))
            finally:
                for connection in connections:
                    await pool.release(connection)
            return CONCURRENCY * EACH / watch.seconds

        a, b = await side_by_side(ours, reference)
    return [Figure("append, 32 at once", a, b, "appends/s", at_least=4, note="BEGIN; INSERT; INSERT; COMMIT")]


async def rate(store: EventStore, each: int = EACH) -> float:
    async def writer() -> None:
        stream_id = f"cart:{uuid7()}"
        for version in range(1, each + 1):
            event, message = _event(stream_id, version)
            await store.append(Write([event], [message]))

    with Stopwatch() as watch:
        await asyncio.gather(*(writer() for _ in range(CONCURRENCY)))
    return CONCURRENCY * each / watch.seconds


def _event(stream_id: str, version: int) -> tuple[Recorded, Message]:
    time = now()
    event = Recorded(
        stream_id, version, str(uuid7()), "ItemAdded", time, str(uuid7()), str(uuid7()), CUSTOMER, "", VALUE
    )
    return event, Message("cart.events", stream_id, VALUE, pack_headers(cloud_event_headers(event, "/bench")), time)


async def _begin_insert_insert_commit(connection: Connection) -> None:
    stream_id = f"cart:{uuid7()}"
    for version in range(1, EACH + 1):
        event, message = _event(stream_id, version)
        async with connection.transaction():
            await connection.execute(
                "INSERT INTO events (stream_id, version, event_id, type, time, correlation_id, causation_id, actor,"
                " traceparent, value) VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10)",
                *event,
            )
            await connection.execute(
                "INSERT INTO outbox (topic, key, value, headers, time) VALUES ($1, $2, $3, $4, $5)", *message
            )
