"""Services: how one is declared, and how its parts are opened in order and closed in reverse."""

import asyncio
from collections.abc import AsyncIterator, Callable, Coroutine, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

from fastapi import APIRouter

from shared.decider import Decider
from shared.handler import CommandHandler
from shared.http.problems import Statuses
from shared.messaging.consumer import Apply, Consumer
from shared.messaging.reactions import Reaction, issue_commands
from shared.messaging.relay import Relay
from shared.recovery.refill import refill_if_empty
from shared.scheduling.deadlines import DeadlineWorker
from shared.scheduling.errands import Errands, ErrandWorker
from shared.schemas.codec import Codec
from shared.schemas.contract.event_schemas import Schemas, load_schemas
from shared.schemas.decoder import Decoder
from shared.schemas.registry import Registry
from shared.schemas.service_schemas import ServiceSchemas
from shared.settings import Settings
from shared.store.answers import delete_old_answers
from shared.store.database import Pool, SharedSchema, open_pool
from shared.store.event_store import EventStore
from shared.store.recording import Recorder
from shared.store.snapshots import Snapshots
from shared.store.states import States
from shared.store.time_travel import Past
from shared.store.views import RowView


@dataclass(frozen=True)
class Projection:
    """A read model: the topics it follows, and the function that applies their messages to its tables."""

    name: str
    topics: Sequence[str]
    apply: Apply
    view: RowView[Any] | None = None
    """The view, if the read model is a table of rows, so that it can be rebuilt."""


@dataclass(frozen=True)
class Background:
    """A loop that runs for as long as one part of its service does: the API or the worker."""

    part: Literal["api", "worker"]
    run: "Callable[[Runtime], Coroutine[Any, Any, None]]"


@dataclass(frozen=True)
class Service:
    """A service as declared by its `wiring.py`."""

    name: str
    decider: Decider[Any, Any, Any]
    router: "Callable[[Runtime], APIRouter]"
    statuses: Statuses = field(default_factory=dict)
    """HTTP status by refusal code; 409 for all others."""
    projections: Sequence[Projection] = ()
    reactions: Sequence[Reaction] = ()
    errands: Errands[Any, Any, Any] | None = None
    """Calls to the outside world."""
    background: "Sequence[Background]" = ()
    follows: Sequence[str] = ()
    """Topics that its background loops read."""
    documents: dict[str, type] = field(default_factory=dict)
    """Documents that the decider announces: topic and class."""
    migrations: Path | None = None
    """The folder of the migrations of its own tables."""
    shared_schemas: Sequence[SharedSchema] = ()
    """PostgreSQL schemas that it uses together with other services."""

    def __post_init__(self) -> None:
        if self.errands and self.decider.deadlines:
            raise ValueError("A service has deadlines or errands: both would need the one row that a stream has.")

    @property
    def followed(self) -> set[str]:
        """Every topic that the service reads."""
        read = [*(it.topics for it in self.projections), *(it.topics for it in self.reactions), self.follows]
        return {topic for topics in read for topic in topics}

    @property
    def source(self) -> str:
        return f"/till-roll/{self.name}"


@dataclass
class Runtime:
    """An opened service: its declaration with connections, handler, relay and consumers."""

    service: Service
    settings: Settings
    pool: Pool
    store: EventStore
    codec: Codec
    decoder: Decoder
    handler: CommandHandler[Any, Any, Any]
    past: Past
    relay: Relay
    consumers: Sequence[Consumer]

    def work(self, tasks: asyncio.TaskGroup) -> None:
        """Starts everything that is not HTTP. It may run in the API's process, or in one of its own."""
        name, decider = self.service.name, self.service.decider
        tasks.create_task(self.relay.run(), name=f"{name} relay")
        for consumer in self.consumers:
            tasks.create_task(consumer.run(), name=consumer.name)
        clean_up = delete_old_answers(self.pool, self.settings.idempotency_days)
        tasks.create_task(clean_up, name=f"{name} old answers")
        if decider.deadlines:
            worker = DeadlineWorker(self.pool, self.handler, decider.deadlines)
            tasks.create_task(worker.run(), name=f"{name} deadlines")
        if self.service.errands:
            errands = ErrandWorker(self.pool, self.handler, self.service.errands, name)
            tasks.create_task(errands.run(), name=f"{name} errands")
        for loop in self.background("worker"):
            tasks.create_task(loop)

    def background(self, part: Literal["api", "worker"]) -> list[Coroutine[Any, Any, None]]:
        """Returns the declared loops of a part, not yet started."""
        return [loop.run(self) for loop in self.service.background if loop.part == part]


async def migrate_service(service: Service, settings: Settings) -> None:
    """Creates or upgrades the service's tables."""
    from shared.store.migrate import migrate  # importing alembic takes longer than reading a stream

    await migrate(settings.database_url.get_secret_value(), service.name, service.migrations, service.shared_schemas)


@asynccontextmanager
async def open_service(service: Service, settings: Settings, schemas: Schemas | None = None) -> AsyncIterator[Runtime]:
    async with AsyncExitStack() as stack:
        pool = await stack.enter_async_context(await open_pool(settings, service.name))
        await migrate_service(service, settings)
        registry = await stack.enter_async_context(Registry(settings))
        codec = Codec()
        service_schemas = ServiceSchemas(pool, registry, schemas or load_schemas(), codec)
        await service_schemas.bind(service.decider.topic, service.decider.events)
        for topic, document in service.documents.items():
            await service_schemas.bind(topic, (document,))
        await service_schemas.follow(service.followed)
        decider, decoder = service.decider, service_schemas.decoder
        schedules = decider.deadlines is not None or service.errands is not None
        await refill_if_empty(pool, settings, service.name, decider.topic, has_deadlines=schedules)
        store = await stack.enter_async_context(EventStore(pool))
        snapshots = Snapshots(pool, service.decider)
        wanted = service.errands.wanted if service.errands else None
        states = States(decider, store, codec, snapshots, decoder.decode)
        handler = CommandHandler(decider, store, states, Recorder(decider, codec, service.source, wanted))
        past = Past(service.decider, store, snapshots, decoder.decode)
        stack.push_async_callback(handler.finish)
        actor = f"service:{service.name}"
        effects = [(r.name, r.topics, issue_commands(r, handler, actor)) for r in service.reactions]
        effects += [(p.name, p.topics, p.apply) for p in service.projections]
        consumers = [Consumer(service.name, *effect, decoder, pool, settings) for effect in effects]
        relay = Relay(pool, settings, service.name)
        yield Runtime(service, settings, pool, store, codec, decoder, handler, past, relay, consumers)
