"""I8: nothing is stuck. Outboxes empty themselves, consumers reach the ends of their topics, no dead letter waits."""

import asyncio
import time
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass

import asyncpg
from aiokafka import AIOKafkaConsumer, TopicPartition

from services.replay.checks.findings import Findings, Violation, World
from services.replay.targets import Store
from shared.deadletters import letters
from shared.errors import OperatorError
from shared.kafka import client_options, open_admin
from shared.service import Service
from shared.settling import settled

NAME, ABOUT = "flow", "outboxes empty, consumers at the end, dead letters settled"
LOOK_SECONDS = 0.1


@dataclass(frozen=True)
class Lag:
    service: str
    consumer: str
    partition: TopicPartition
    reached: int
    end: int


def consumers(service: Service) -> list[tuple[str, Sequence[str]]]:
    names: list[tuple[str, Sequence[str]]] = [(it.name, it.topics) for it in service.reactions]
    names += [(it.name, it.topics) for it in service.projections]
    return [(f"{service.name}.{name}", topics) for name, topics in names]


@asynccontextmanager
async def open_ends(world: World) -> AsyncIterator[AIOKafkaConsumer]:
    """A consumer of everything that is consumed, to ask it where the topics end."""
    topics = {topic for service in world.services for _, topics in consumers(service) for topic in topics}
    async with open_admin(world.settings) as admin:
        described = await admin.describe_topics(sorted(topics))
    kafka = AIOKafkaConsumer(**client_options(world.settings), enable_auto_commit=False)
    try:
        await kafka.start()
        kafka.assign([TopicPartition(it["topic"], p["partition"]) for it in described for p in it["partitions"]])
        yield kafka
    finally:
        await kafka.stop()


async def lags(world: World, ends: dict[TopicPartition, int]) -> list[Lag]:
    found = []
    for store in world.stores.values():
        rows = await store.pool.fetch("SELECT consumer, topic, partition, next_offset FROM offsets")
        reached = {(consumer, TopicPartition(topic, p)): offset for consumer, topic, p, offset in rows}
        for consumer, topics in consumers(store.service):
            for partition, end in ends.items():
                if partition.topic in topics and (at := reached.get((consumer, partition), 0)) < end:
                    found.append(Lag(store.service.name, consumer, partition, at, end))
    return found


async def waiting(store: Store) -> asyncpg.Record | None:
    """What leaves the outbox next."""
    return await store.pool.fetchrow("SELECT position, topic, key, time FROM outbox ORDER BY position LIMIT 1")


async def is_quiet(world: World, kafka: AIOKafkaConsumer) -> bool:
    """Nothing is on its way: what is wrong now will not come right by itself."""
    for store in world.stores.values():
        if await waiting(store) or await _is_awaited(store):
            return False
    return not await lags(world, await kafka.end_offsets(kafka.assignment()))


async def _is_awaited(store: Store) -> bool:
    """An answer of the provider: the stream is looked at again and again until it has come."""
    if store.service.look_at is None:
        return False
    awaited: bool = await store.pool.fetchval("SELECT EXISTS (SELECT FROM deadlines)")
    return awaited


async def check(world: World) -> list[Findings]:
    findings = Findings(NAME, ABOUT, unit="consumers")
    async with open_ends(world) as kafka:
        ends = await kafka.end_offsets(kafka.assignment())
        findings.looked_at = sum(len(consumers(service)) for service in world.services)
        for store in world.stores.values():
            await _outbox(world, store, findings)
        give_up = time.monotonic() + world.patience
        while (behind := await lags(world, ends)) and time.monotonic() < give_up:
            await asyncio.sleep(LOOK_SECONDS)
    for lag in behind:
        what = f"{lag.consumer} is {lag.end - lag.reached} messages behind, and does not move on."
        place = f"{lag.partition.topic}/{lag.partition.partition}/{lag.reached}"
        findings.add(Violation(what, position=place, look="till status"))
    for store in world.stores.values():
        await _dead_letters(world, store, findings)
    return [findings]


async def _outbox(world: World, store: Store, findings: Findings) -> None:
    last = await store.pool.fetchval("SELECT max(position) FROM outbox")
    give_up = time.monotonic() + world.patience
    while last is not None and time.monotonic() < give_up:
        if not await store.pool.fetchval("SELECT EXISTS (SELECT FROM outbox WHERE position <= $1)", last):
            return
        await asyncio.sleep(LOOK_SECONDS)
    if last is not None and (first := await waiting(store)):
        what = (
            f"The outbox of {store.service.name} is not emptied: for {first['topic']} since {first['time']:%H:%M:%S}."
        )
        findings.add(Violation(what, first["key"], f"outbox position {first['position']}", "till status"))


async def _dead_letters(world: World, store: Store, findings: Findings) -> None:
    known = await settled(store.pool)
    try:
        async for letter in letters(world.settings, store.service.name):
            if letter.death not in known and (world.since is None or letter.death.time >= world.since):
                what = f"A dead letter of {letter.death.consumer or 'nobody'} is not settled: {letter.reason}"
                findings.add(Violation(what, letter.header("ce_subject"), letter.id, f"till dlq show {letter.id}"))
    except OperatorError as missing:  # a service that never had a dead letter may have no topic for them
        findings.notes.append(missing.message)
