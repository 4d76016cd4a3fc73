"""Applies a stretch of its topic to a view beside the live one, side effects off: no command, no letter, no notice."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime

from aiokafka import AIOKafkaConsumer, ConsumerRecord, TopicPartition

from services.replay.beside import Beside
from services.replay.folding import SetAside
from services.replay.topics import between
from shared.consumer import TRANSIENT, Incoming, incoming

Told = Callable[[int], None]
"""Of so many more messages."""


@dataclass
class Applied:
    messages: int = 0
    aside: list[SetAside] = field(default_factory=list)
    over: set[str] = field(default_factory=set)
    """Streams whose past has ended: an event of theirs was still to come."""


async def catch_up(
    place: Beside,
    kafka: AIOKafkaConsumer,
    goal: Mapping[TopicPartition, int],
    told: Told = lambda _: None,
    until: datetime | None = None,
) -> Applied:
    """From where it is up to the goal, each batch with its offset in one transaction."""
    done = Applied()
    async for partition, records in between(kafka, await place.offsets(), goal):
        readable = [message for record in records if (message := await _read(place, record, done))]
        if until:
            readable = [message for message in readable if not _is_over(message, until, done.over)]
        async with place.connection.transaction():
            await _apply(place, readable, done)
            await place.move_to({partition: records[-1].offset + 1})
        done.messages += len(records)
        told(len(records))
    return done


async def _read(place: Beside, record: ConsumerRecord, done: Applied) -> Incoming | None:
    try:
        return await incoming(record, place.memory)
    except TRANSIENT:
        raise
    except Exception as error:  # a dead letter of the live view
        done.aside.append(_aside(f"{record.topic}/{record.partition}/{record.offset}", 0, error))
        return None


def _is_over(message: Incoming, until: datetime, over: set[str]) -> bool:
    if message.time > until:
        over.add(message.stream_id)
    return message.stream_id in over


async def _apply(place: Beside, messages: Sequence[Incoming], done: Applied) -> None:
    if not messages:
        return
    view = place.target.view.unheard()
    try:
        async with place.connection.transaction():
            await view.apply(place.connection, messages)
    except TRANSIENT:
        raise
    except Exception as error:
        if len(messages) == 1:
            done.aside.append(_aside(messages[0].stream_id, messages[0].version, error))
            return
        for message in messages:  # one of them is poison, as it was to the live view: the others are not
            await _apply(place, [message], done)


def _aside(where: str, version: int, error: Exception) -> SetAside:
    return SetAside(where, version, f"{type(error).__name__}: {error}")
