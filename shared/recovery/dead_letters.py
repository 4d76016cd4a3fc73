"""A message that could not be handled: its own bytes and headers, and beside them why, where and by whom."""

import asyncio
import traceback
from collections.abc import AsyncIterator, Iterator
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import NamedTuple

from aiokafka import AIOKafkaConsumer, ConsumerRecord, TopicPartition

from shared.envelope import Message, from_millis, now, pack_headers, rfc3339
from shared.errors import OperatorError
from shared.kafka import client_options, open_admin
from shared.refill import read_topic
from shared.settings import Settings

PREFIX = "dlq_"
FIRST = PREFIX + "reason"
LIMIT = 800_000
MOST_AROUND = 100_000
"""Bytes of key and headers. A key that is no text takes four times as much: as it is, and as what can be shown."""
LONGEST = 4_000
FETCH_SECONDS = 10.0


def dead_letter(service: str, consumer: str, record: ConsumerRecord, error: BaseException) -> Message:
    time = now()
    key, value, headers = record.key, record.value or b"", list(record.headers)
    reasons = {
        "reason": reason(error)[:LONGEST],
        "causes": "\n".join(causes(error))[:LONGEST],
        "trace": "".join(traceback.format_exception(error))[-LONGEST:],
        "topic": record.topic,
        "partition": str(record.partition),
        "offset": str(record.offset),
        "consumer": consumer,
        "time": rfc3339(time),
    }
    around = len(key or b"") + sum(len(name) + len(text or b"") for name, text in headers)
    if len(value) + around > LIMIT:
        # It came compressed, or the broker's limit is high: a letter that no broker takes would block all others.
        reasons["left_out"] = f"{len(value)} bytes; they are where topic, partition and offset say"
        value = b""
        if around > MOST_AROUND:
            key, headers = None, []
    headers += [(PREFIX + name, text.encode(errors="replace")) for name, text in reasons.items()]
    # The key of an outbox row is text. The bytes it was are kept beside.
    text_key = (key or b"").decode(errors="replace").replace("\0", "\ufffd")
    return Message(topic_of(service), text_key, value, pack_headers([*headers, (PREFIX + "key", key)]), time)


def topic_of(service: str) -> str:
    return f"{service}.dlq"


def reason(error: BaseException) -> str:
    return f"{type(error).__name__}: {error}"


def causes(error: BaseException | None) -> Iterator[str]:
    """From what failed down to what made it fail."""
    while error:
        yield reason(error)
        error = error.__cause__ or (None if error.__suppress_context__ else error.__context__)


class Death(NamedTuple):
    """Who failed on which message, and when. A relay that dies may send a letter twice: it is the same death."""

    consumer: str
    topic: str
    partition: int
    offset: int
    time: datetime


@dataclass(frozen=True)
class Letter:
    """A dead letter as it is found in its topic."""

    id: str
    """Where it is: `cart.dlq/0/17`."""
    death: Death
    reason: str
    causes: str
    trace: str
    left_out: str
    original: ConsumerRecord
    """The message as the consumer was given it; without its value where that was left out."""

    def header(self, name: str) -> str:
        return (dict(self.original.headers).get(name) or b"").decode(errors="replace")


def letter_of(record: ConsumerRecord) -> Letter:
    headers = list(record.headers)
    # From the last one on: the message itself may have been a dead letter before.
    ours = max((n for n, (name, _) in enumerate(headers) if name == FIRST), default=len(headers))
    added = {name.removeprefix(PREFIX): value for name, value in headers[ours:]}
    about = {name: (value or b"").decode(errors="replace") for name, value in added.items()}
    try:
        death = Death(
            about["consumer"],
            about["topic"],
            int(about["partition"]),
            int(about["offset"]),
            datetime.fromisoformat(about["time"]).astimezone(UTC),
        )
    except (KeyError, ValueError):
        # Somebody else put it here. It can be looked at and dropped like any other.
        death = Death("", record.topic, record.partition, record.offset, from_millis(record.timestamp))
    return Letter(
        id=f"{record.topic}/{record.partition}/{record.offset}",
        death=death,
        reason=about.get("reason", "not written by a consumer of ours"),
        causes=about.get("causes", ""),
        trace=about.get("trace", ""),
        left_out=about.get("left_out", ""),
        original=replace(
            record,
            topic=death.topic,
            partition=death.partition,
            offset=death.offset,
            key=added.get("key", record.key),
            headers=tuple(headers[:ours]),
        ),
    )


async def letters(settings: Settings, service: str) -> AsyncIterator[Letter]:
    """Every one of the service, settled or not, oldest first; of those that were sent twice, the first."""
    met: set[Death] = set()
    async for records in read_topic(settings, topic_of(service)):
        for record in records:
            letter = letter_of(record)
            if letter.death not in met:
                met.add(letter.death)
                yield letter


async def letter_at(settings: Settings, topic: str, partition: int, offset: int) -> Letter:
    record = await record_at(settings, topic, partition, offset)
    if record is None:
        raise OperatorError(f"There is no dead letter {topic}/{partition}/{offset}.", "See: till dlq list --all")
    return letter_of(record)


async def record_at(settings: Settings, topic: str, partition: int, offset: int) -> ConsumerRecord | None:
    """The message at one place; None where there is none."""
    place = TopicPartition(topic, partition)
    async with open_admin(settings) as admin:
        if topic not in await admin.list_topics():
            return None
        [described] = await admin.describe_topics([topic])
        if partition not in {known["partition"] for known in described["partitions"]}:
            return None
        kafka = AIOKafkaConsumer(**client_options(settings), enable_auto_commit=False, auto_offset_reset="none")
        try:
            await kafka.start()
            kafka.assign([place])
            first, end = (await kafka.beginning_offsets([place]))[place], (await kafka.end_offsets([place]))[place]
            if not first <= offset < end:
                return None
            kafka.seek(place, offset)
            record = await asyncio.wait_for(kafka.getone(place), FETCH_SECONDS)
        except TimeoutError as late:
            raise OperatorError(f"Kafka does not give {topic}/{partition}/{offset}.", "See: till status") from late
        finally:
            await kafka.stop()
    return record if record.offset == offset else None  # compacted away
