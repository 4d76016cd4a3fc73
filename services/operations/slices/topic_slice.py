"""Takes a slice of a topic, by time and by condition: as documents to read, or byte for byte into a new topic."""

from collections.abc import AsyncGenerator, Callable
from contextlib import aclosing
from dataclasses import asdict, is_dataclass
from datetime import datetime
from typing import Any, NamedTuple

from aiokafka import ConsumerRecord
from aiokafka.admin import NewTopic
from aiokafka.errors import for_code

from services.operations.slices.conditions import Condition
from shared.envelope import from_millis, millis, now, rfc3339
from shared.errors import OperatorError
from shared.messaging.kafka import open_admin
from shared.messaging.relay import open_producer
from shared.messaging.topic_reader import is_empty, open_reader
from shared.messaging.topics import declared_topics
from shared.schemas.codec import Undecodable
from shared.schemas.contract.event_schemas import load_schemas
from shared.schemas.decoder import Decoder
from shared.settings import Settings

HEADERS = {
    "id": "ce_id",
    "stream": "ce_subject",
    "actor": "ce_actor",
    "correlation": "ce_correlationid",
    "causation": "ce_causationid",
}
FIELDS = frozenset(("topic", "partition", "offset", "time", "key", "type", "version", "data", *HEADERS))
ORIGIN_PREFIX = "replay_"
"""Begins the names of the headers that say where a message of the slice came from."""
SENDS_IN_FLIGHT = 5_000

OnProgress = Callable[[int, int], None]
"""Called with the number of messages read so far, and of those taken."""


class NotATopic(Exception):
    """Raised when the topic to read does not exist, or the one to write must not be written."""


class TopicSlice(NamedTuple):
    """The messages of a topic between two moments for which a condition holds."""

    topic: str
    start: datetime | None
    end: datetime | None
    where: Condition | None


async def read_documents(
    settings: Settings, wanted: TopicSlice, on_progress: OnProgress = lambda _, __: None
) -> AsyncGenerator[dict[str, Any]]:
    """Yields the messages as documents. Personal data in them is encrypted, and stays so."""
    async with aclosing(_read_slice(settings, wanted, on_progress, decoded=True)) as taken:
        async for _, document in taken:
            yield document


async def copy_slice(
    settings: Settings, wanted: TopicSlice, into: str, on_progress: OnProgress = lambda _, __: None
) -> int:
    """Copies values, keys, headers, timestamps and partitions unchanged; adds headers that say from where and when.

    Returns the number of messages.
    """
    await _prepare_topic(settings, wanted.topic, into)
    taken = 0
    sent = []
    stamp = rfc3339(now()).encode()
    async with open_producer(settings) as producer:
        async for record, _ in _read_slice(settings, wanted, on_progress, decoded=wanted.where is not None):
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
            if len(sent) >= SENDS_IN_FLIGHT:
                await _wait_for_acks(sent)
        await _wait_for_acks(sent)
    return taken


async def _wait_for_acks(sent: list[Any]) -> None:
    for one in sent:
        await one
    sent.clear()


def _origin(record: ConsumerRecord, stamp: bytes) -> list[tuple[str, bytes]]:
    return [
        (f"{ORIGIN_PREFIX}topic", record.topic.encode()),
        (f"{ORIGIN_PREFIX}partition", b"%d" % record.partition),
        (f"{ORIGIN_PREFIX}offset", b"%d" % record.offset),
        (f"{ORIGIN_PREFIX}time", stamp),
    ]


async def _prepare_topic(settings: Settings, topic: str, into: str) -> None:
    if into == topic or into in {declared.name for declared in declared_topics()} or into.startswith("_"):
        raise NotATopic(f"{into} is a topic of the shop, or of Kafka itself. Choose a new name for the copy.")
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
        raise NotATopic(
            f"{into} has {len(other['partitions'])} partitions, {topic} has {len(described['partitions'])}."
        )
    if not await is_empty(settings, into):
        raise NotATopic(f"{into} is not empty. A slice is copied to a new topic, or to an empty one.")


async def _read_slice(
    settings: Settings, wanted: TopicSlice, on_progress: OnProgress, decoded: bool
) -> AsyncGenerator[tuple[ConsumerRecord, dict[str, Any]]]:
    decoder, seen, taken = Decoder.for_reading(load_schemas(), settings=settings), 0, 0
    first = millis(wanted.start) if wanted.start else -1
    last = millis(wanted.end) if wanted.end else 2**62
    async with open_admin(settings) as admin:
        if wanted.topic not in await admin.list_topics():
            raise NotATopic(f"There is no topic {wanted.topic}. See: till topics")
    async with open_reader(settings, wanted.topic) as topic:
        starts = await topic.offsets_at(wanted.start) if wanted.start else await topic.beginnings()
        async for _, records in topic.read(starts, await topic.ends()):
            for record in records:
                if not first <= record.timestamp <= last:
                    continue
                document = await _document(record, decoder) if decoded else {}
                if wanted.where is None or wanted.where(document):
                    taken += 1
                    yield record, document
            seen += len(records)
            on_progress(seen, taken)


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
