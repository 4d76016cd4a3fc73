"""Finds messages that are still on their way: in outboxes, not yet consumed, or owed by the payment provider."""

from collections.abc import Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass

import asyncpg
from aiokafka import TopicPartition

from services.operations.reading.stores import Store
from services.operations.verify.findings import CheckContext
from shared.messaging.topic_reader import TopicReader, open_reader
from shared.service import Service


@dataclass(frozen=True)
class Lag:
    """A consumer that has not reached the end of a partition."""

    service: str
    consumer: str
    partition: TopicPartition
    reached: int
    end: int


def list_consumers(service: Service) -> list[tuple[str, Sequence[str]]]:
    """Returns the consumers of a service by name, each with its topics."""
    names: list[tuple[str, Sequence[str]]] = [(it.name, it.topics) for it in service.reactions]
    names += [(it.name, it.topics) for it in service.projections]
    return [(f"{service.name}.{name}", topics) for name, topics in names]


def open_consumed_topics(context: CheckContext) -> AbstractAsyncContextManager[TopicReader]:
    """Opens a reader of every topic that is consumed, to ask it where the topics end."""
    topics = {topic for service in context.services for _, topics in list_consumers(service) for topic in topics}
    return open_reader(context.settings, *sorted(topics))


async def find_lags(context: CheckContext, ends: dict[TopicPartition, int]) -> list[Lag]:
    found = []
    for service in context.services:
        rows = await context.stores[service.name].pool.fetch(
            "SELECT consumer, topic, partition, next_offset FROM offsets"
        )
        reached = {(consumer, TopicPartition(topic, p)): offset for consumer, topic, p, offset in rows}
        for consumer, topics in list_consumers(service):
            for partition, end in ends.items():
                if partition.topic in topics and (at := reached.get((consumer, partition), 0)) < end:
                    found.append(Lag(service.name, consumer, partition, at, end))
    return found


async def first_in_outbox(store: Store) -> asyncpg.Record | None:
    return await store.pool.fetchrow("SELECT position, topic, key, time FROM outbox ORDER BY position LIMIT 1")


async def is_quiet(context: CheckContext, consumed: TopicReader) -> bool:
    """Tells whether nothing is on its way, so that what is wrong now stays wrong."""
    for service in context.services:
        store = context.stores[service.name]
        if await first_in_outbox(store) or await _awaits_answer(service, store):
            return False
    return not await find_lags(context, await consumed.ends())


async def _awaits_answer(service: Service, store: Store) -> bool:
    """Tells whether an answer to an errand is outstanding: until it arrives, its stream is in the table `deadlines`."""
    if service.errands is None:
        return False
    awaited: bool = await store.pool.fetchval("SELECT EXISTS (SELECT FROM deadlines)")
    return awaited
