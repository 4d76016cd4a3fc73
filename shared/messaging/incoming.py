"""A message as consumers, reactions and read models receive it: decoded, with its CloudEvents metadata."""

from datetime import datetime
from typing import TYPE_CHECKING, Any, NamedTuple, Self

from shared.envelope import EPOCH, from_cloud_event
from shared.schemas.codec import Undecodable

if TYPE_CHECKING:
    import asyncpg
    from aiokafka import ConsumerRecord

    from shared.schemas.decoder import Decoder

NOT_FROM_KAFKA = -1
ROW_COLUMNS = "stream_id, version, event_id::text, time, correlation_id, traceparent, value"
"""The columns of `events` that `Incoming.from_row` takes, in this order."""


class Incoming(NamedTuple):  # one per message, and a frozen dataclass takes four times as long to create
    """A decoded message. `data` holds the fields of the record, or the event itself if it is the service's own."""

    type: str
    stream_id: str
    version: int
    data: Any
    event_id: str = ""
    time: datetime = EPOCH
    correlation_id: str = ""
    traceparent: str = ""
    topic: str = ""
    partition: int = NOT_FROM_KAFKA
    offset: int = NOT_FROM_KAFKA

    @classmethod
    def from_record(cls, record: "ConsumerRecord", event_type: str, data: Any) -> Self:
        """Makes a message of a Kafka record. `event_type` may differ from the header `ce_type`, after upcasting."""
        try:
            event = from_cloud_event(dict(record.headers), record.value)
        except KeyError as missing:
            raise Undecodable(f"the header {missing} is missing") from missing
        return cls(
            event_type,
            event.stream_id,
            event.version,
            data,
            event.event_id,
            event.time,
            event.correlation_id,
            event.traceparent,
            record.topic,
            record.partition,
            record.offset,
        )

    @classmethod
    def from_row(cls, row: "asyncpg.Record", event_type: str, data: Any, topic: str) -> Self:
        """Makes a message of a stored event (`ROW_COLUMNS`), as it would come from its topic."""
        stream_id, version, event_id, time, correlation_id, traceparent, _ = row
        return cls(event_type, stream_id, version, data, event_id, time, correlation_id, traceparent, topic)


async def decode_record(record: "ConsumerRecord", decoder: "Decoder") -> Incoming:
    """Decodes a Kafka record, or raises `Undecodable` with the reason."""
    if record.value is None:
        raise Undecodable("the message has no value")
    data = await decoder.decode(record.value)
    return Incoming.from_record(record, decoder.type_of(record.value), data)
