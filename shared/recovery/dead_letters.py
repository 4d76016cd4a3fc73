"""The format of a dead letter: the failed message with its bytes and headers, plus `dlq_` headers with the reason."""

import traceback
from collections.abc import Iterator
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import NamedTuple

from aiokafka import ConsumerRecord

from shared.envelope import Message, from_millis, now, pack_headers, rfc3339

PREFIX = "dlq_"
FIRST_HEADER = PREFIX + "reason"
MAX_BYTES = 800_000
"""The size of value, key and headers beyond which the value is left out: no broker would take the letter."""
MAX_METADATA_BYTES = 100_000
"""The size of key and headers beyond which they are left out too. A binary key is stored twice, once as text."""
MAX_REASON_CHARACTERS = 4_000


def dead_letter(service: str, consumer: str, record: ConsumerRecord, error: BaseException) -> Message:
    """Makes the outbox row of a dead letter for a record that `consumer` failed on."""
    time = now()
    key, value, headers = record.key, record.value or b"", list(record.headers)
    added = {
        "reason": reason(error)[:MAX_REASON_CHARACTERS],
        "causes": "\n".join(causes(error))[:MAX_REASON_CHARACTERS],
        "trace": "".join(traceback.format_exception(error))[-MAX_REASON_CHARACTERS:],
        "topic": record.topic,
        "partition": str(record.partition),
        "offset": str(record.offset),
        "consumer": consumer,
        "time": rfc3339(time),
    }
    metadata_bytes = len(key or b"") + sum(len(name) + len(text or b"") for name, text in headers)
    if len(value) + metadata_bytes > MAX_BYTES:
        # The record was compressed, or its broker has a high limit. A letter that no broker takes would block the rest.
        added["left_out"] = f"{len(value)} bytes; they are where topic, partition and offset say"
        value = b""
        if metadata_bytes > MAX_METADATA_BYTES:
            key, headers = None, []
    headers += [(PREFIX + name, text.encode(errors="replace")) for name, text in added.items()]
    # The key of an outbox row is text, so its original bytes go into a header.
    text_key = (key or b"").decode(errors="replace").replace("\0", "\ufffd")
    return Message(dead_letter_topic(service), text_key, value, pack_headers([*headers, (PREFIX + "key", key)]), time)


def dead_letter_topic(service: str) -> str:
    return f"{service}.dlq"


def reason(error: BaseException) -> str:
    """Describes an error in one line."""
    return f"{type(error).__name__}: {error}"


def causes(error: BaseException | None) -> Iterator[str]:
    """Yields the chain of causes, from the error itself down to the first one."""
    while error:
        yield reason(error)
        error = error.__cause__ or (None if error.__suppress_context__ else error.__context__)


class Death(NamedTuple):
    """The identity of a dead letter: which consumer failed on which message, and when.

    A relay that dies may send a letter twice; both copies have the same death.
    """

    consumer: str
    topic: str
    partition: int
    offset: int
    time: datetime


@dataclass(frozen=True)
class Letter:
    """A dead letter as found in its topic."""

    id: str
    """Topic, partition and offset of the letter: `cart.dlq/0/17`."""
    death: Death
    reason: str
    causes: str
    trace: str
    left_out: str
    """A note if the value was too large to be included; else empty."""
    original: ConsumerRecord
    """The message as the consumer received it; without its value if that was left out."""

    def header(self, name: str) -> str:
        return (dict(self.original.headers).get(name) or b"").decode(errors="replace")


def parse_letter(record: ConsumerRecord) -> Letter:
    """Reads a dead letter; a record that no consumer of ours wrote becomes a letter with an unknown consumer."""
    headers = list(record.headers)
    # The last occurrence counts: the message itself may have been a dead letter before.
    start = max((n for n, (name, _) in enumerate(headers) if name == FIRST_HEADER), default=len(headers))
    added = {name.removeprefix(PREFIX): value for name, value in headers[start:]}
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
        # Not written by us. It can be shown and dropped like any other.
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
            headers=tuple(headers[:start]),
        ),
    )
