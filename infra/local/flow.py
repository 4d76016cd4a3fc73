"""Reads how far messages have got: what waits in each outbox, and how far each consumer is behind its topics."""

from collections import defaultdict
from dataclasses import dataclass

import asyncpg
from aiokafka import AIOKafkaConsumer, TopicPartition
from aiokafka.errors import KafkaError

from infra.settings import Settings
from shared.messaging.kafka import client_options
from shared.recovery.dead_letters import dead_letter_topic
from shared.store.database import CONNECTION_ERRORS


@dataclass(frozen=True)
class Flow:
    service: str
    outbox: int
    lag: dict[str, int]
    """Messages not yet applied, by consumer."""
    dead_letters: int
    """Dead letters that wait to be retried or dropped."""


async def flows(settings: Settings) -> list[Flow]:
    """Returns the flow of every service with a database, or nothing while Kafka or PostgreSQL is down."""
    try:
        connection = await asyncpg.connect(settings.database_url.get_secret_value(), timeout=5)
    except (*CONNECTION_ERRORS, asyncpg.PostgresError):
        return []
    try:
        found = await connection.fetch("SELECT schemaname FROM pg_tables WHERE tablename = 'outbox' ORDER BY 1")
        services = [row[0] for row in found]
        outboxes = {s: await connection.fetchval(f'SELECT count(*) FROM "{s}".outbox') for s in services}
        offsets = {
            s: await connection.fetch(f'SELECT consumer, topic, partition, next_offset FROM "{s}".offsets')
            for s in services
        }
    finally:
        await connection.close()
    if not services:
        return []
    try:
        ends = await _ends(settings, {row["topic"] for rows in offsets.values() for row in rows}, services)
        return [
            Flow(s, outboxes[s], _lag(offsets[s], ends), await _waiting_letters(settings, s, ends)) for s in services
        ]
    except (KafkaError, OSError):
        return []


def _lag(offsets: list[asyncpg.Record], ends: dict[TopicPartition, int]) -> dict[str, int]:
    lag: dict[str, int] = defaultdict(int)
    for consumer, topic, partition, next_offset in offsets:
        lag[consumer] += max(0, ends.get(TopicPartition(topic, partition), 0) - next_offset)
    return dict(lag)


async def _waiting_letters(settings: Settings, service: str, ends: dict[TopicPartition, int]) -> int:
    if not any(end for partition, end in ends.items() if partition.topic == dead_letter_topic(service)):
        return 0
    from services.operations.dead_letters import list_letters  # it imports all services, and is seldom needed

    return len(await list_letters(settings, [service], include_settled=False))


async def _ends(settings: Settings, topics: set[str], services: list[str]) -> dict[TopicPartition, int]:
    kafka = AIOKafkaConsumer(*topics, *map(dead_letter_topic, services), **client_options(settings))
    await kafka.start()
    try:
        ends: dict[TopicPartition, int] = await kafka.end_offsets(kafka.assignment())
        return ends
    finally:
        await kafka.stop()
