"""Measures the relay against the bare librdkafka producer on the same messages: throughput, and latency when idle."""

import asyncio
import statistics
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from aiokafka.admin import NewTopic
from confluent_kafka import Producer
from uuid_utils import uuid7

import shared.messaging.relay
from infra.settings import Settings
from shared.envelope import Message, Recorded, cloud_event_headers, millis, now, pack_headers, unpack_headers
from shared.messaging.kafka import open_admin
from shared.messaging.relay import Relay
from shared.messaging.topic_reader import read_topic
from shared.store.database import Pool
from shared.store.event_store import EventStore, Write, execute
from tests.bench.figures import Figure, side_by_side
from tests.bench.kit.kernel import CUSTOMER, Stopwatch, cart_service, empty

MESSAGES = 60_000
MESSAGES_PER_WRITE = 5_000
PINGS = 300
OVER_BARE_MS = 5.0
TOPIC = "bench.relay"
"""A topic of its own: in a service's topic, its messages would become dead letters of every consumer."""
PARTITIONS = 6


async def run(settings: Settings) -> list[Figure]:
    async with cart_service(settings) as runtime, own_topic(settings):
        pool = runtime.pool
        messages = [_message() for _ in range(MESSAGES)]
        throughput = await side_by_side(
            lambda: _relay(settings, pool, messages), lambda: _librdkafka(settings, messages), rounds=5
        )
        lost = await _lost(settings, {message.key for message in messages})
        await empty(pool)
        ours, bare = await _relay_latency(settings, pool, runtime.store), await _librdkafka_latency(settings)
    return [
        Figure("relay of a full outbox, bare librdkafka producer", *throughput, "messages/s", at_least=0.4),
        Figure("messages lost on the way", lost, MESSAGES, "messages", at_most=0),
        Figure("commit to acknowledged when idle, p50", _p(ours, 50), _p(bare, 50), "ms"),
        Figure(
            "commit to acknowledged when idle, p99 (limit: bare + 5 ms)",
            _p(ours, 99),
            _p(bare, 99) + OVER_BARE_MS,
            "ms",
            at_most=1,
        ),
    ]


@asynccontextmanager
async def own_topic(settings: Settings) -> AsyncIterator[None]:
    async with open_admin(settings) as admin:
        await admin.create_topics([NewTopic(TOPIC, PARTITIONS, 1)])
    yield
    async with open_admin(settings) as admin:
        await admin.delete_topics([TOPIC])


def _message() -> Message:
    stream_id, time = f"cart:{uuid7()}", now()
    ids = [str(uuid7()) for _ in range(3)]
    trace = f"00-{'a' * 32}-{'b' * 16}-01"
    event = Recorded(stream_id, 1, ids[0], "ItemAdded", time, ids[1], ids[2], CUSTOMER, trace, bytes(64))
    headers = pack_headers(cloud_event_headers(event, "/bench"))
    return Message(TOPIC, stream_id, event.value, headers, time)


async def _relay(settings: Settings, pool: Pool, messages: list[Message]) -> float:
    await empty(pool)
    async with pool.acquire() as connection:
        for start in range(0, len(messages), MESSAGES_PER_WRITE):
            await execute(connection, [Write(messages=messages[start : start + MESSAGES_PER_WRITE])])
    await pool.execute("VACUUM ANALYZE outbox")
    relay = Relay(pool, settings, "cart")
    running = asyncio.create_task(relay.run())
    try:
        with Stopwatch() as watch:
            while relay.published < len(messages):
                await asyncio.sleep(0.002)
    finally:
        await _stop(running)
    return len(messages) / watch.seconds


async def _librdkafka(settings: Settings, messages: list[Message]) -> float:
    prepared: list[tuple[str, bytes, Any, int]] = [
        (m.key, m.value, unpack_headers(m.headers), millis(m.time)) for m in messages
    ]
    producer = _producer(settings, linger_ms=5)
    with Stopwatch() as watch:
        for key, value, headers, timestamp in prepared:
            producer.produce(TOPIC, key=key, value=value, headers=headers, timestamp=timestamp)
        producer.flush()
    return len(messages) / watch.seconds


async def _lost(settings: Settings, keys: set[str]) -> int:
    """Counts the keys that the topic does not have."""
    missing = {key.encode() for key in keys}
    async for records in read_topic(settings, TOPIC):
        missing -= {record.key for record in records}
    return len(missing)


async def _relay_latency(settings: Settings, pool: Pool, store: EventStore) -> list[float]:
    """Measures from the return of the commit to the arrival of the broker's acknowledgement."""
    acknowledged = asyncio.Event()
    original = shared.messaging.relay.acknowledgements

    async def observed(sent: Any) -> Any:
        result = await original(sent)
        acknowledged.set()
        return result

    shared.messaging.relay.acknowledgements = observed
    running = asyncio.create_task(Relay(pool, settings, "cart").run())
    took = []
    try:
        for n in range(PINGS + 20):
            acknowledged.clear()
            await store.append(Write(messages=[_message()]))
            committed = time.perf_counter()
            await acknowledged.wait()
            if n >= 20:  # connections and code are warm
                took.append((time.perf_counter() - committed) * 1000)
            await asyncio.sleep(0.005)
    finally:
        shared.messaging.relay.acknowledgements = original
        await _stop(running)
    return took


async def _librdkafka_latency(settings: Settings) -> list[float]:
    producer = _producer(settings, linger_ms=0)
    took = []
    for n in range(PINGS + 20):
        message = _message()
        headers: Any = unpack_headers(message.headers)
        sent = time.perf_counter()
        producer.produce(TOPIC, key=message.key, value=message.value, headers=headers)
        producer.flush()
        if n >= 20:
            took.append((time.perf_counter() - sent) * 1000)
        await asyncio.sleep(0.005)
    return took


def _producer(settings: Settings, linger_ms: int) -> Producer:
    producer = Producer(
        {
            "bootstrap.servers": settings.kafka_bootstrap,
            "enable.idempotence": True,
            "acks": "all",
            "linger.ms": linger_ms,
            "queue.buffering.max.messages": 2 * MESSAGES,
            "queue.buffering.max.kbytes": 1_000_000,
        }
    )
    producer.list_topics(TOPIC)
    return producer


async def _stop(task: asyncio.Task[None]) -> None:
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)


def _p(values: list[float], percent: int) -> float:
    return statistics.quantiles(values, n=100)[percent - 1]
