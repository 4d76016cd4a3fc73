"""A stretch of a topic, by time and by condition: as documents to read, or byte for byte into a topic of its own."""

from collections.abc import AsyncGenerator, Callable
from contextlib import aclosing
from dataclasses import asdict, is_dataclass
from datetime import datetime
from typing import Any, NamedTuple

from aiokafka import ConsumerRecord, TopicPartition
from aiokafka.admin import NewTopic
from aiokafka.errors import for_code

from services.replay.decoding import Decoder
from services.replay.expressions import Where
from services.replay.topics import at_moment, begins, between, ends
from shared.codec import Undecodable
from shared.envelope import from_millis, millis, now, rfc3339
from shared.errors import OperatorError
from shared.kafka import open_admin
from shared.refill import is_empty, open_reader
from shared.relay import open_producer
from shared.schemas import load_schemas
from shared.settings import Settings
from shared.topics import declared_topics

HEADERS = {
    "id": "ce_id",
    "stream": "ce_subject",
    "actor": "ce_actor",
    "correlation": "ce_correlationid",
    "causation": "ce_causationid",
}
NAMES = frozenset(("topic", "partition", "offset", "time", "key", "type", "version", "data", *HEADERS))
PREFIX = "replay_"
"""Of the headers that tell where a message of the slice came from."""

Told = Callable[[int, int], None]
"""Of so many messages read, and so many taken."""


class NotATopic(Exception):
    """The topic to read does not exist, or the one to write must not be written."""


class Slice(NamedTuple):
    topic: str
    start: datetime | None
    end: datetime | None
    where: Where | None


async def documents(
    settings: Settings, wanted: Slice, told: Told = lambda _, __: None
) -> AsyncGenerator[dict[str, Any]]:
    """As anybody may read them: personal data in them is sealed, and stays so."""
    async with aclosing(_taken(settings, wanted, told, decoded=True)) as taken:
        async for _, document in taken:
            yield document


async def copy(settings: Settings, wanted: Slice, into: str, told: Told = lambda _, __: None) -> int:
    """Values, keys, headers, timestamps and partitions as they were; beside them, headers of where and when."""
    await _prepare(settings, wanted.topic, into)
    taken = 0
    sent = []
    stamp = rfc3339(now()).encode()
    async with open_producer(settings) as producer:
        async for record, _ in _taken(settings, wanted, told, decoded=wanted.where is not None):
            headers = [*record.headers, *_origin(record, stamp)]
            sent.append(
                await producer.send(
                    into,
                    value=record.value,
                    key=record.key,
                    partition=record.partition,
                    timestamp_ms=record.timestamp,
                    headers=headers,
                )
            )
            taken += 1
            if len(sent) >= 5_000:
                await _acknowledged(sent)
        await _acknowledged(sent)
    return taken


async def _acknowledged(sent: list[Any]) -> None:
    for one in sent:
        await one
    sent.clear()


def _origin(record: ConsumerRecord, stamp: bytes) -> list[tuple[str, bytes]]:
    return [
        (f"{PREFIX}topic", record.topic.encode()),
        (f"{PREFIX}partition", b"%d" % record.partition),
        (f"{PREFIX}offset", b"%d" % record.offset),
        (f"{PREFIX}time", stamp),
    ]


async def _prepare(settings: Settings, topic: str, into: str) -> None:
    if into == topic or into in {declared.name for declared in declared_topics()} or into.startswith("_"):
        raise NotATopic(f"{into} is a topic of the shop, or of Kafka itself: a slice goes into one of its own.")
    async with open_admin(settings) as admin:
        there = await admin.list_topics()
        if topic not in there:
            raise NotATopic(f"There is no topic {topic}. See: till topics")
        [described] = await admin.describe_topics([topic])
        if into not in there:
            copies = min(len(partition["replicas"]) for partition in described["partitions"])
            answer = await admin.create_topics([NewTopic(into, len(described["partitions"]), copies)])
            for _, code, message in answer.topic_errors:
                if code:
                    raise OperatorError(f"The topic {into} could not be created: {for_code(code).__name__} {message}")
            return
        [other] = await admin.describe_topics([into])
    if len(other["partitions"]) != len(described["partitions"]):
        raise NotATopic(f"{into} has {len(other['partitions'])} partitions, {topic} {len(described['partitions'])}.")
    if not await is_empty(settings, into):
        raise NotATopic(f"{into} is not empty. A slice goes into a new topic, or one that holds nothing.")


async def _taken(
    settings: Settings, wanted: Slice, told: Told, decoded: bool
) -> AsyncGenerator[tuple[ConsumerRecord, dict[str, Any]]]:
    decoder, seen, taken = Decoder(settings, load_schemas()), 0, 0
    first = millis(wanted.start) if wanted.start else -1
    last = millis(wanted.end) if wanted.end else 2**62
    async with open_admin(settings) as admin:
        if wanted.topic not in await admin.list_topics():
            raise NotATopic(f"There is no topic {wanted.topic}. See: till topics")
    async with open_reader(settings, wanted.topic) as kafka:
        starts = await at_moment(kafka, wanted.start) if wanted.start else await begins(kafka)
        stops: dict[TopicPartition, int] = await ends(kafka)
        async for _, records in between(kafka, starts, stops):
            for record in records:
                if not first <= record.timestamp <= last:
                    continue
                document = await _document(record, decoder) if decoded else {}
                if wanted.where is None or wanted.where(document):
                    taken += 1
                    yield record, document
            seen += len(records)
            told(seen, taken)


async def _document(record: ConsumerRecord, decoder: Decoder) -> dict[str, Any]:
    headers = {name: (value or b"").decode(errors="replace") for name, value in record.headers}
    document: dict[str, Any] = {
        "topic": record.topic,
        "partition": record.partition,
        "offset": record.offset,
        "time": headers.get("ce_time") or rfc3339(from_millis(record.timestamp)),
        "key": record.key.decode(errors="replace") if record.key is not None else None,
        **{name: headers.get(header) for name, header in HEADERS.items()},
        "version": int(headers["ce_streamversion"]) if headers.get("ce_streamversion", "").isdigit() else None,
        "type": headers.get("ce_type"),
        "data": None,
    }
    try:
        data = await decoder.decode(record.value or b"")
        document["data"] = asdict(data) if is_dataclass(data) and not isinstance(data, type) else data
        document["type"] = decoder.type_of(record.value)
    except Undecodable as error:
        document["undecodable"] = str(error)
    return document
