"""Applies messages of its topic to a shadow view, side effects off: no command, no dead letter, no notification."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from datetime import datetime

from aiokafka import ConsumerRecord

from services.operations.reading.fold import SetAside
from services.operations.rebuild.shadow_view import ShadowView
from shared.messaging.consumer import TRANSIENT
from shared.messaging.incoming import Incoming, decode_record
from shared.messaging.topic_reader import Offsets, TopicReader


@dataclass
class Applied:
    """The outcome of a run of `catch_up`."""

    messages: int = 0
    aside: list[SetAside] = field(default_factory=list)
    over: set[str] = field(default_factory=set)
    """Streams whose past has ended: an event of theirs was dated later than `until`."""


async def catch_up(
    shadow: ShadowView,
    topic: TopicReader,
    goal: Offsets,
    on_applied: Callable[[int], None] = lambda _: None,
    until: datetime | None = None,
) -> Applied:
    """Applies messages up to the goal, each batch with its offset in one transaction.

    `on_applied` is called with the number of messages of each batch. With `until`, later events are left out.
    """
    done = Applied()
    async for partition, records in topic.read(await shadow.offsets(), goal):
        messages = [message for record in records if (message := await _read(shadow, record, done))]
        if until:
            messages = [message for message in messages if not _is_over(message, until, done.over)]
        async with shadow.connection.transaction():
            await _apply(shadow, messages, done)
            await shadow.set_offsets({partition: records[-1].offset + 1})
        done.messages += len(records)
        on_applied(len(records))
    return done


async def _read(shadow: ShadowView, record: ConsumerRecord, done: Applied) -> Incoming | None:
    try:
        return await decode_record(record, shadow.decoder)
    except TRANSIENT:
        raise
    except Exception as error:  # a dead letter of the live view
        place = f"{record.topic}/{record.partition}/{record.offset}"
        done.aside.append(SetAside.because(error, place, 0))
        return None


def _is_over(message: Incoming, until: datetime, over: set[str]) -> bool:
    if message.time > until:
        over.add(message.stream_id)
    return message.stream_id in over


async def _apply(shadow: ShadowView, messages: Sequence[Incoming], done: Applied) -> None:
    if not messages:
        return
    view = shadow.target.view.without_notify()
    try:
        async with shadow.connection.transaction():
            await view.apply(shadow.connection, messages)
    except TRANSIENT:
        raise
    except Exception as error:
        if len(messages) == 1:
            done.aside.append(SetAside.because(error, messages[0].stream_id, messages[0].version))
            return
        for message in messages:  # one of them fails, as it did for the live view: apply each on its own
            await _apply(shadow, [message], done)
