"""Bronze, silver and quarantine: the tables that the ingest writes. Silver's columns follow the Avro schemas."""

import re
from collections.abc import Iterator

from analytics.catalog.avro_types import delta_type
from analytics.catalog.table import Column, Table, array, struct
from shared.schemas.contract.event_schemas import EventSchema, Schemas, load_schemas

TOPICS = {
    "cart.events": "cart_events",
    "order.events": "order_events",
    "payment.events": "payment_events",
    "stock.events": "stock_events",
}
"""The topics that have a table in silver, by name without the layer."""
SILVER_TABLES = tuple(TOPICS.values())
ALERTS = "fraud.alerts"
FEED = (*TOPICS, ALERTS)
"""The topics that bronze has."""

POSITION = (
    Column("topic", "string", "Kafka topic."),
    Column("partition", "integer", "Partition of the topic."),
    Column("offset", "long", "Offset within the partition."),
)
KAFKA_TIME = Column("kafka_time", "timestamp", "Timestamp of the Kafka message: the time of its event.")
HEADER = struct(Column("key", "string", "Name of the header."), Column("value", "binary", "Its bytes."))
MESSAGE = (
    *POSITION,
    KAFKA_TIME,
    Column("key", "string", "Kafka key: the id of the stream."),
    Column("value", "binary", "The message as it was read: magic byte 0, schema id in four bytes, Avro."),
    Column("headers", array(HEADER), "CloudEvents headers (`ce_id`, `ce_type`, ...), as they were read."),
)
EVENT = (
    Column("event_id", "string", "Unique id of the event (header `ce_id`), a UUIDv7."),
    Column("event_type", "string", "Current name of the event type; the column of that name holds its fields."),
    Column("stream_id", "string", "Stream of the event (`cart:ID`, `order:ID`, ...)."),
    Column("stream_version", "integer", "Position of the event in its stream, from 1."),
    Column("event_time", "timestamp", "When the event happened, by the clock of the service."),
    *POSITION,
    Column("schema_id", "integer", "Registry id of the Avro schema that wrote the event."),
    KAFKA_TIME,
    Column("correlation_id", "string", "Id shared by all events that one request led to."),
    Column("causation_id", "string", "Id of the event or request that caused this one."),
    Column("actor", "string", "Who caused the event: the subject of a token, `service:NAME` or `system:deadline`."),
)
"""Columns of every silver table of events; a struct column for each event type follows them."""
QUARANTINE = (
    *MESSAGE,
    Column("schema_id", "integer", "Schema id in front of the message; null where there is none."),
    Column("reason", "string", "Why the message could not be read, in words."),
    Column("event_id", "string", "Id of the event, where its header could be read."),
)
WRITER_SCHEMA = (
    Column("schema_id", "integer", "Registry id."),
    Column("text", "string", "The Avro schema, as JSON."),
)
PLACE = ("topic", "partition", "offset", "kafka_time")


def event_tables(schemas: Schemas | None = None) -> Iterator[Table]:
    yield Table(
        "bronze.events",
        "Every message of the event topics and of fraud.alerts, as it was read from Kafka. Append only.",
        MESSAGE,
        key=("topic", "partition", "offset"),
        stats=PLACE,
    )
    yield Table(
        "bronze.schemas",
        "The Avro schemas that wrote the messages of bronze, so that they can be decoded without the registry.",
        WRITER_SCHEMA,
        key=("schema_id",),
        stats=("schema_id",),
    )
    schemas = schemas or load_schemas()
    for topic, name in TOPICS.items():
        yield Table(
            f"silver.{name}",
            f"Every valid event of {topic} once, decoded with the schema that wrote it and upcast to the newest one.",
            (*EVENT, *(_event_column(schema) for schema in current_events(schemas, topic))),
            key=("event_id",),
            stats=("event_id", "event_type", "stream_id", "event_time", *PLACE),
        )
    yield Table(
        "silver.quarantine",
        "Messages that could not be read, or that contradict an event with the same id, with the reason in words.",
        QUARANTINE,
        key=("topic", "partition", "offset"),
        stats=PLACE,
    )


def current_events(schemas: Schemas, topic: str) -> list[EventSchema]:
    """Returns the newest schema of each event type that is still written; retired types are upcast to these."""
    return [schema for schema in schemas.newest_of_topic(topic) if schema.record not in schemas.upcasters]


def column_of(event_type: str) -> str:
    """Names the column of an event type: `ItemAdded` -> `item_added`."""
    return re.sub(r"(?<!^)(?=[A-Z])", "_", event_type).lower()


def _event_column(schema: EventSchema) -> Column:
    doc = schema.definition.get("doc", "")
    return Column(column_of(schema.type), delta_type(schema.definition), f"{doc} Null in rows of other types.".strip())
