"""The envelope of an event: its cause, its place in a stream, and the CloudEvents headers it travels with."""

from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any, NamedTuple

import msgpack
from uuid_utils import uuid7

Headers = list[tuple[str, bytes]]

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
MILLISECOND = timedelta(milliseconds=1)


@dataclass(frozen=True, slots=True)
class Context:
    """The actor behind a command, and the chain of causes that the command belongs to."""

    actor: str
    correlation_id: str = field(default_factory=lambda: str(uuid7()))
    causation_id: str = ""
    traceparent: str = ""


class Recorded(NamedTuple):
    """An event as it is stored. `value` is Avro in the Confluent wire format, the very bytes that are published.

    The order of fields is that of columns, and it is a NamedTuple because `zip` turns those into columns fastest.
    """

    stream_id: str
    version: int
    event_id: str
    type: str
    time: datetime
    correlation_id: str
    causation_id: str
    actor: str
    traceparent: str
    value: bytes


class Message(NamedTuple):
    """A row of the outbox: a Kafka record before it is sent. `pack_headers` packs its headers into one column."""

    topic: str
    key: str
    value: bytes
    headers: bytes
    time: datetime


def now() -> datetime:
    return datetime.now(UTC)


def millis(time: datetime) -> int:
    return (time - EPOCH) // MILLISECOND  # exact; a conversion by float is off by one for some moments


def from_millis(unix_ms: int) -> datetime:
    return EPOCH + unix_ms * MILLISECOND


def rfc3339(time: datetime) -> str:
    utc = time if time.tzinfo is UTC else time.astimezone(UTC)
    return utc.isoformat(timespec="microseconds")[:-6] + "Z"


def cloud_event_headers(event: Recorded, source: str) -> Headers:
    """Makes the CloudEvents headers (binary mode) of a message.

    They depend on the stored event alone, so that republishing gives equal bytes.
    """
    return [
        ("ce_specversion", b"1.0"),
        ("ce_id", event.event_id.encode()),
        ("ce_type", event.type.encode()),
        ("ce_source", source.encode()),
        ("ce_subject", event.stream_id.encode()),
        ("ce_time", rfc3339(event.time).encode()),
        ("ce_streamversion", b"%d" % event.version),
        ("ce_correlationid", event.correlation_id.encode()),
        ("ce_causationid", event.causation_id.encode()),
        ("ce_actor", event.actor.encode()),
        ("traceparent", event.traceparent.encode()),
    ]


def from_cloud_event(headers: dict[str, bytes], value: bytes) -> Recorded:
    """Parses the headers of a message into the event as it was stored: the inverse of `cloud_event_headers`."""

    def text(name: str) -> str:
        return headers[name].decode()

    return Recorded(
        stream_id=text("ce_subject"),
        version=int(headers["ce_streamversion"]),
        event_id=text("ce_id"),
        type=text("ce_type"),
        time=datetime.fromisoformat(text("ce_time")).astimezone(UTC),
        correlation_id=text("ce_correlationid"),
        causation_id=text("ce_causationid"),
        actor=text("ce_actor"),
        traceparent=text("traceparent"),
        value=value,
    )


def pack_headers(headers: Headers) -> bytes:
    """Packs headers into one value, which is how a column stores them."""
    packed: bytes = msgpack.packb(headers)
    return packed


def unpack_headers(packed: bytes) -> Headers:
    headers: Any = msgpack.unpackb(packed, use_list=False)
    return list(headers)
