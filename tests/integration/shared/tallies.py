"""A small service for tests of the kernel: tallies that grow up to a limit.

Everything around it is real: the schema registry, the topic, the database.
"""

import asyncio
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, replace
from typing import Any

import asyncpg
from fastapi import APIRouter
from uuid_utils import uuid7

from infra.settings import Settings
from shared.decider import Decided, Decider
from shared.envelope import Context, Recorded
from shared.errors import Refused
from shared.handler import CommandHandler
from shared.messaging.consumer import Apply
from shared.schemas.contract.event_schemas import EventSchema, Schemas
from shared.schemas.registration import push
from shared.schemas.registry import Registry
from shared.service import Projection, Runtime, Service, open_service
from shared.store.event_store import EVENT_COLUMNS
from shared.store.recording import Recorder
from shared.store.snapshots import EVERY, Snapshots
from shared.store.states import States
from tests.integration.shared.loops import PATIENCE, running
from tests.integration.shared.topics import Record, create_topics, delete_topics, read_topic

UNLIMITED = 1_000_000_000


@dataclass(frozen=True, slots=True)
class Add:
    """Adds every amount, each as an event of its own, or none of them."""

    amounts: tuple[int, ...]
    limit: int = UNLIMITED


@dataclass(frozen=True, slots=True)
class RaiseTo:
    total: int


@dataclass(frozen=True, slots=True)
class Added:
    amount: int


@dataclass(frozen=True, slots=True)
class Tally:
    total: int


def decide(command: Add | RaiseTo, tally: Tally) -> list[Added]:
    match command:
        case Add(amounts, limit) if tally.total + sum(amounts) > limit:
            raise Refused("over-limit", f"{tally.total} and {sum(amounts)} are more than {limit}.")
        case Add(amounts):
            return [Added(amount) for amount in amounts]
        case RaiseTo(total):
            return [Added(total - tally.total)] if total > tally.total else []


def evolve(tally: Tally, event: Added) -> Tally:
    return Tally(tally.total + event.amount)


def added_schema(topic: str, version: int = 1) -> EventSchema:
    """The schema of Added. Version 2 has the field `by`; old readers ignore it, old events get the default."""
    fields: list[dict[str, Any]] = [{"name": "amount", "type": "long"}]
    if version == 2:
        fields.append({"name": "by", "type": "string", "default": "nobody"})
    definition = {"type": "record", "name": "Added", "namespace": "tests.tally", "fields": fields}
    return EventSchema("tally", "tests.tally.Added", version, topic, definition)


def add(*amounts: int, limit: int = UNLIMITED) -> Add:
    return Add(amounts, limit)


ANN = Context(actor="customer:ann", causation_id="request-1", traceparent="00-" + "a" * 32 + "-" + "b" * 16 + "-01")


@dataclass(frozen=True)
class Tallies:
    """A service of tallies whose name, topic and schema no other test uses."""

    settings: Settings
    service: Service
    schemas: Schemas

    @property
    def topic(self) -> str:
        return self.service.decider.topic

    @property
    def dead_letter_topic(self) -> str:
        return f"{self.service.name}.dlq"

    @asynccontextmanager
    async def opened(self, settings: Settings | None = None, schemas: Schemas | None = None) -> AsyncIterator[Runtime]:
        async with open_service(self.service, settings or self.settings, schemas or self.schemas) as runtime:
            yield runtime

    @asynccontextmanager
    async def processes(self, count: int) -> AsyncIterator[list[Runtime]]:
        """Opens the service several times, as several processes do: each has its own connections and state cache."""
        async with AsyncExitStack() as stack:
            yield [await stack.enter_async_context(self.opened()) for _ in range(count)]

    def following(self, apply: Apply, name: str = "effects") -> "Tallies":
        """A copy of the service with a consumer of its own topic."""
        return replace(self, service=replace(self.service, projections=[Projection(name, [self.topic], apply)]))

    def records(self) -> list["Record"]:
        return read_topic(self.settings, self.topic)

    def dead_letters(self) -> list["Record"]:
        return read_topic(self.settings, self.dead_letter_topic)


@asynccontextmanager
async def new_tallies(settings: Settings, partitions: int = 3) -> AsyncIterator[Tallies]:
    name = f"tally_{uuid7().hex[-12:]}"
    topic = f"{name}.events"
    decider = Decider(category="tally", topic=topic, initial=Tally(0), decide=decide, evolve=evolve)
    service = Service(name=name, decider=decider, router=lambda _: APIRouter())
    schemas = Schemas([added_schema(topic)])
    await create_topics(settings, {topic: partitions, f"{name}.dlq": 1})
    await register(settings, schemas)
    yield Tallies(settings, service, schemas)
    await drop_schema(settings, name)
    await delete_topics(settings, [topic, f"{name}.dlq"])


async def register(settings: Settings, schemas: Schemas) -> dict[str, int]:
    async with Registry(settings) as registry:
        return await push(registry, schemas)


async def drop_schema(settings: Settings, name: str) -> None:
    """Deletes everything that a service has in the database."""
    connection = await asyncpg.connect(settings.database_url.get_secret_value())
    try:
        await connection.execute(f'DROP SCHEMA IF EXISTS "{name}" CASCADE')
    finally:
        await connection.close()


async def relayed(runtime: Runtime) -> None:
    """Publishes everything that is in the outbox."""
    if await runtime.pool.fetchval("SELECT EXISTS (SELECT FROM outbox)"):
        # Skipped for an empty outbox: aiokafka leaves its socket open when it is cancelled while it connects.
        async with running(runtime.relay.run()):
            await asyncio.wait_for(runtime.relay.wait_until_drained(), PATIENCE)


async def stored_events(runtime: Runtime) -> list[Recorded]:
    """Every event of the store in the order of positions."""
    rows = await runtime.pool.fetch(f"SELECT {EVENT_COLUMNS} FROM events ORDER BY position")
    return [Recorded(*row) for row in rows]


async def handled(
    runtime: Runtime, stream_id: str, command: Add | RaiseTo, expected: int | None = None
) -> Decided[Tally, Added]:
    return await runtime.handler.handle(stream_id, command, ANN, expected=expected)


def fresh_handler(runtime: Runtime, every: int = EVERY) -> CommandHandler[Tally, Any, Any]:
    """A handler with an empty state cache, as after a restart."""
    decider, store, codec = runtime.service.decider, runtime.store, runtime.codec
    states = States(decider, store, codec, Snapshots(runtime.pool, decider, every))
    return CommandHandler(decider, store, states, Recorder(decider, codec, runtime.service.source))
