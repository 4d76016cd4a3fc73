"""What a service is made of, and how its parts live in a process: opened in order, stopped in the other."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

from fastapi import APIRouter

from shared.codec import Codec
from shared.consumer import Apply, Consumer
from shared.database import Pool, open_pool
from shared.deadlines import DeadlineWorker, LookAt
from shared.decider import Decider
from shared.handler import CommandHandler
from shared.housekeeping import forget_old_answers
from shared.http.problems import Statuses
from shared.reactions import React, Reactor
from shared.refill import refill_if_empty
from shared.registry import Registry, SchemaMemory
from shared.relay import Relay
from shared.schemas import Schemas, load_schemas
from shared.settings import Settings
from shared.snapshots import Snapshots
from shared.store import EventStore
from shared.timetravel import Past
from shared.views import RowView


@dataclass(frozen=True)
class Projection:
    """A read model: the topics it follows, and how their messages change its tables."""

    name: str
    topics: Sequence[str]
    apply: Apply
    view: RowView[Any] | None = None
    """Where it is a table of rows: what can be built anew beside it."""


@dataclass(frozen=True)
class Reaction:
    """Another service's events, and the commands they lead to here."""

    name: str
    topics: Sequence[str]
    react: React
    once: Callable[[], Awaitable[None]] | None = None
    """What has to be true before it reacts to anything."""


@dataclass(frozen=True)
class Service:
    """A service as declared by its `wiring.py`."""

    name: str
    decider: Decider[Any, Any, Any]
    router: "Callable[[Runtime], APIRouter]"
    statuses: Statuses = field(default_factory=dict)
    """HTTP statuses of its refusals, where they are not 409."""
    projections: Sequence[Projection] = ()
    reactions: Sequence[Reaction] = ()
    look_at: "Callable[[Runtime], LookAt] | None" = None
    """What to do when a stream's moment has come, where that is more than a command."""
    beside_worker: "Callable[[Runtime], Sequence[Coroutine[Any, Any, None]]]" = lambda _: ()
    """What else runs beside relay and consumers."""
    follows: Sequence[str] = ()
    """Topics that something beside the worker reads."""
    documents: dict[str, type] = field(default_factory=dict)
    """By topic, what the decider announces beside its events."""

    @property
    def followed(self) -> set[str]:
        """Every topic that it reads."""
        read = [*(it.topics for it in self.projections), *(it.topics for it in self.reactions), self.follows]
        return {topic for topics in read for topic in topics}

    @property
    def source(self) -> str:
        return f"/till-roll/{self.name}"


@dataclass
class Runtime:
    """An opened service."""

    service: Service
    settings: Settings
    pool: Pool
    store: EventStore
    memory: SchemaMemory
    handler: CommandHandler[Any, Any, Any]
    past: Past
    relay: Relay
    consumers: Sequence[Consumer]
    beside_api: list[Coroutine[Any, Any, None]] = field(default_factory=list)
    """What the router wants to run as long as it serves."""

    def work(self, tasks: asyncio.TaskGroup) -> None:
        """Everything that is not HTTP: may run in the API's process, or in one of its own."""
        name = self.service.name
        tasks.create_task(self.relay.run(), name=f"{name} relay")
        for consumer in self.consumers:
            tasks.create_task(consumer.run(), name=consumer.name)
        tasks.create_task(forget_old_answers(self.pool, self.settings.idempotency_days), name=f"{name} housekeeping")
        for beside in self.service.beside_worker(self):
            tasks.create_task(beside)
        if self.service.decider.deadlines:
            tasks.create_task(self._deadlines().run(), name=f"{name} deadlines")

    def _deadlines(self) -> DeadlineWorker:
        if self.service.look_at is None:
            return DeadlineWorker(self.pool, self.handler)
        # It sets moments that are now: be told of every append.
        return DeadlineWorker(self.pool, self.handler, self.service.look_at(self), f"outbox_{self.service.name}")


@asynccontextmanager
async def open_service(service: Service, settings: Settings, schemas: Schemas | None = None) -> AsyncIterator[Runtime]:
    from shared.migrations import migrate  # who only reads does not pay for alembic

    async with AsyncExitStack() as stack:
        pool = await stack.enter_async_context(await open_pool(settings, service.name))
        await migrate(settings.database_url.get_secret_value(), service.name)
        registry = await stack.enter_async_context(Registry(settings))
        codec = Codec()
        memory = SchemaMemory(pool, registry, schemas or load_schemas(), codec)
        await memory.bind(service.decider.topic, service.decider.events)
        for topic, document in service.documents.items():
            await memory.bind(topic, (document,))
        await memory.follow(service.followed)
        decider = service.decider
        await refill_if_empty(pool, settings, service.name, decider.topic, has_deadlines=decider.deadlines is not None)
        store = await stack.enter_async_context(EventStore(pool))
        snapshots = Snapshots(pool, service.decider)
        handler = CommandHandler(service.decider, store, codec, snapshots, service.source, memory.decode)
        past = Past(service.decider, store, snapshots, memory.decode)
        stack.push_async_callback(handler.settled)
        consumers = [_reacting(service, reaction, handler, memory, pool, settings) for reaction in service.reactions]
        consumers += [
            Consumer(service.name, p.name, p.topics, p.apply, memory, pool, settings) for p in service.projections
        ]
        relay = Relay(pool, settings, service.name)
        yield Runtime(service, settings, pool, store, memory, handler, past, relay, consumers)


def _reacting(
    service: Service,
    reaction: Reaction,
    handler: CommandHandler[Any, Any, Any],
    memory: SchemaMemory,
    pool: Pool,
    settings: Settings,
) -> Consumer:
    reactor = Reactor(handler, reaction.react, f"service:{service.name}", reaction.once)
    return Consumer(service.name, reaction.name, reaction.topics, reactor.apply, memory, pool, settings)
