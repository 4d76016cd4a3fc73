"""A service small enough to see through (tallies that grow up to a limit), and what its tests do again and again.

Everything is real: the registry, the topic, the database. Only the network may be cut, by `Wire`.
"""

import asyncio
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine, Iterable, Sequence
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from dataclasses import dataclass, replace
from typing import Any, NamedTuple, TypeVar
from urllib.parse import urlsplit, urlunsplit

import asyncpg
import confluent_kafka
from aiokafka.admin import NewTopic
from aiokafka.errors import for_code
from fastapi import APIRouter
from pydantic import SecretStr
from uuid_utils import uuid7

from shared.consumer import Apply
from shared.decider import Decider
from shared.envelope import Context
from shared.errors import Refused
from shared.handler import Handled
from shared.kafka import open_admin
from shared.registry import Registry, push
from shared.schemas import EventSchema, Schemas
from shared.service import Projection, Runtime, Service, open_service
from shared.settings import Settings

Found = TypeVar("Found")

PATIENCE = 60.0
UNLIMITED = 1_000_000_000


@dataclass(frozen=True, slots=True)
class Add:
    """One event for each amount, all or none."""

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
    """Version 2 says who did it. Old readers do without, old events are read with the default."""
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
    """A service name, a topic and a schema that no other test uses."""

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
        """As many processes would: each with its own connections, memory and group commit."""
        async with AsyncExitStack() as stack:
            yield [await stack.enter_async_context(self.opened()) for _ in range(count)]

    def following(self, apply: Apply, name: str = "effects") -> "Tallies":
        """The same service with a consumer of its own topic."""
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


async def create_topics(settings: Settings, partitions: dict[str, int]) -> None:
    async with open_admin(settings) as admin:
        answer = await admin.create_topics([NewTopic(name, count, 1) for name, count in partitions.items()])
        for _, code, message in answer.topic_errors:
            if code:
                raise for_code(code)(message)

    async def usable() -> bool:
        return await asyncio.to_thread(_has_leaders, settings, partitions)

    await until(usable)


def _has_leaders(settings: Settings, partitions: dict[str, int]) -> bool:
    """Created is not yet usable: each partition needs a leader, and that leader has to know it."""
    client = confluent_kafka.Consumer({"bootstrap.servers": settings.kafka_bootstrap, "group.id": "leaders"})
    try:
        for topic, count in partitions.items():
            for partition in range(count):
                client.get_watermark_offsets(confluent_kafka.TopicPartition(topic, partition), timeout=2)
    except confluent_kafka.KafkaException:
        return False
    finally:
        client.close()
    return True


async def delete_topics(settings: Settings, names: Sequence[str]) -> None:
    async with open_admin(settings) as admin:
        await admin.delete_topics(list(names))

        async def gone() -> bool:
            return not set(names) & set(await admin.list_topics())

        await until(gone)


async def drop_schema(settings: Settings, name: str) -> None:
    """The whole memory of a service, gone."""
    connection = await asyncpg.connect(settings.database_url.get_secret_value())
    try:
        await connection.execute(f'DROP SCHEMA IF EXISTS "{name}" CASCADE')
    finally:
        await connection.close()


async def until(condition: Callable[[], Awaitable[Found]], seconds: float = PATIENCE) -> Found:
    """What the condition gives once it is true enough; a failure when that takes too long."""
    deadline = time.monotonic() + seconds
    while not (found := await condition()):
        assert time.monotonic() < deadline, f"not within {seconds} s: {condition.__qualname__}"
        await asyncio.sleep(0.01)
    return found


@asynccontextmanager
async def running(*work: Coroutine[Any, Any, None]) -> AsyncIterator[list[asyncio.Task[None]]]:
    """Loops that run for as long as the block does. One that ends by itself has failed."""
    tasks = [asyncio.create_task(loop) for loop in work]
    try:
        yield tasks
        for task in tasks:
            if task.done() and not task.cancelled():
                task.result()
    finally:
        await stop(*tasks)


async def stop(*tasks: asyncio.Task[None]) -> None:
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)


async def relayed(runtime: Runtime) -> None:
    """Everything that is in the outbox now is in Kafka."""
    if await runtime.pool.fetchval("SELECT EXISTS (SELECT FROM outbox)"):
        # Not with an empty one: aiokafka leaves its socket open when it is cancelled while it connects.
        async with running(runtime.relay.run()):
            await asyncio.wait_for(runtime.relay.drained(), PATIENCE)


async def handled(runtime: Runtime, stream_id: str, command: Add | RaiseTo, **how: Any) -> Handled[Tally, Added]:
    outcome = await runtime.handler.handle(stream_id, command, ANN, **how)
    assert isinstance(outcome, Handled)
    return outcome


class Record(NamedTuple):
    """A message as another client of Kafka sees it."""

    partition: int
    offset: int
    key: bytes | None
    value: bytes | None
    headers: tuple[tuple[str, bytes], ...]
    timestamp: int

    def header(self, name: str) -> str:
        return dict(self.headers)[name].decode()

    @property
    def content(self) -> tuple[object, ...]:
        """All but where it stands."""
        return self.key, self.value, self.headers, self.timestamp


def read_topic(settings: Settings, topic: str) -> list[Record]:
    """The whole topic, partition by partition, read by librdkafka: nothing of ours is trusted here."""
    consumer = confluent_kafka.Consumer(
        {"bootstrap.servers": settings.kafka_bootstrap, "group.id": "reader", "enable.auto.commit": False}
    )
    try:
        partitions = consumer.list_topics(topic, timeout=10).topics[topic].partitions
        wanted = {p: consumer.get_watermark_offsets(confluent_kafka.TopicPartition(topic, p)) for p in partitions}
        missing = {p: end for p, (start, end) in wanted.items() if end > start}
        consumer.assign([confluent_kafka.TopicPartition(topic, p, wanted[p][0]) for p in missing])
        found: list[Record] = []
        deadline = time.monotonic() + PATIENCE
        while missing:
            assert time.monotonic() < deadline, f"{topic} could not be read to its end"
            for message in consumer.consume(5000, timeout=0.5):
                assert message.error() is None, message.error()
                record = _record(message)
                found.append(record)
                if record.offset + 1 >= missing.get(record.partition, 0):
                    missing.pop(record.partition, None)
        return sorted(found)
    finally:
        consumer.close()


def _record(message: Any) -> Record:
    return Record(
        message.partition(),
        message.offset(),
        message.key(),
        message.value(),
        tuple(message.headers() or ()),
        message.timestamp()[1],
    )


def send(settings: Settings, topic: str, records: Iterable[Record]) -> None:
    """Put messages into a topic past everything of ours, in their order, into the partition they name."""
    producer = confluent_kafka.Producer(
        {
            "bootstrap.servers": settings.kafka_bootstrap,
            "message.max.bytes": 10_000_000,
            "compression.type": "zstd",
        }
    )
    failures: list[Any] = []

    def delivered(error: Any, _message: Any) -> None:
        if error:
            failures.append(error)

    for record in records:
        producer.produce(
            topic,
            key=record.key,
            value=record.value,
            headers=list(record.headers),
            partition=record.partition,
            timestamp=record.timestamp,
            on_delivery=delivered,
        )
    assert producer.flush(PATIENCE) == 0
    assert not failures, failures


def by_stream(records: Iterable[Record]) -> dict[str, list[int]]:
    """The versions of each stream in the order of their offsets."""
    versions: dict[str, list[int]] = {}
    for record in sorted(records):
        versions.setdefault(record.header("ce_subject"), []).append(int(record.header("ce_streamversion")))
    return versions


class Wire:
    """A network cable between a client and a server: bytes go through until it is cut."""

    def __init__(self, host: str, port: int) -> None:
        self._target = host, port
        self._server: asyncio.Server | None = None
        self._ends: set[asyncio.StreamWriter] = set()
        self.port = 0

    async def mend(self) -> None:
        self._server = await asyncio.start_server(self._carry, "127.0.0.1", self.port)
        self.port = self._server.sockets[0].getsockname()[1]

    async def cut(self) -> None:
        """Every connection breaks, and new ones are refused."""
        if self._server:
            self._server.close()
            for end in list(self._ends):
                end.transport.abort()
            await self._server.wait_closed()

    async def _carry(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        there, away = await asyncio.open_connection(*self._target)
        ends = {writer, away}
        self._ends |= ends
        try:
            async with asyncio.TaskGroup() as directions:
                directions.create_task(_copy(reader, away))
                directions.create_task(_copy(there, writer))
        finally:
            self._ends -= ends
            for end in ends:
                end.transport.abort()


async def _copy(source: asyncio.StreamReader, target: asyncio.StreamWriter) -> None:
    with suppress(OSError):
        while data := await source.read(65536):
            target.write(data)
            await target.drain()
    if not target.is_closing():
        target.close()


@asynccontextmanager
async def wire_to(url: str) -> AsyncIterator[tuple[Wire, str]]:
    """A cable to the server of that URL, and the URL that leads through it."""
    parts = urlsplit(url)
    assert parts.hostname
    assert parts.port
    wire = Wire(parts.hostname, parts.port)
    await wire.mend()
    through = parts._replace(netloc=parts.netloc.replace(f":{parts.port}", f":{wire.port}"))
    try:
        yield wire, urlunsplit(through)
    finally:
        await wire.cut()


@asynccontextmanager
async def wired_database(settings: Settings) -> AsyncIterator[tuple[Wire, Settings]]:
    async with wire_to(settings.database_url.get_secret_value()) as (wire, url):
        yield wire, settings.model_copy(update={"database_url": SecretStr(url)})


@asynccontextmanager
async def wired_registry(settings: Settings) -> AsyncIterator[tuple[Wire, Settings]]:
    async with wire_to(settings.registry_url) as (wire, url):
        yield wire, settings.model_copy(update={"registry_url": url})
