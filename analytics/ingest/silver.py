"""Silver: messages decoded by the schema that wrote them, upcast to the current event types.

Pure functions of frames, so that the stream and a recomputation from bronze give the same rows.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import lru_cache, reduce
from operator import and_, or_

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as sf

from analytics.catalog import TOPICS, column_of, current_events
from analytics.catalog.events import EVENT, MESSAGE
from analytics.catalog.table import names
from analytics.ingest.avro import END, END_FIELD, decode_marked, is_whole, struct_type, upcast_event
from analytics.ingest.writer_schemas import WriterSchemas
from shared.schemas.codec import MAGIC, PREFIX
from shared.schemas.contract.event_schemas import EventSchema
from shared.schemas.contract.upcasting import upcast_chain

HEADERS = {
    "event_id": "ce_id",
    "stream_id": "ce_subject",
    "stream_version": "ce_streamversion",
    "event_time": "ce_time",
    "correlation_id": "ce_correlationid",
    "causation_id": "ce_causationid",
    "actor": "ce_actor",
}
REQUIRED = ("event_id", "stream_id", "stream_version", "event_time")


def silver_rows(bronze: DataFrame, table: str, writers: WriterSchemas) -> DataFrame:
    """Computes all of a silver table (`cart_events`) from all of bronze: each event id once."""
    [topic] = [topic for topic, name in TOPICS.items() if name == table]
    first = Window.partitionBy("event_id").orderBy("partition", "offset")
    once = valid_events(bronze, topic, writers).withColumn("n", sf.row_number().over(first)).where("n = 1")
    return once.select(*silver_columns(topic, writers))


def silver_columns(topic: str, writers: WriterSchemas) -> list[str]:
    return [*names(EVENT), *(column_of(schema.type) for schema in current_events(writers.schemas, topic))]


def valid_events(bronze: DataFrame, topic: str, writers: WriterSchemas) -> DataFrame:
    """Selects a topic's messages that can be read: the columns of bronze and those of silver."""
    return decode(bronze, topic, writers).where("is_valid AND barrier >= 0")


def decode(bronze: DataFrame, topic: str, writers: WriterSchemas) -> DataFrame:
    """Adds silver's columns to all messages of a topic, and whether each `is_valid`, or has bytes `left_over`.

    `barrier` is there for the optimizer: a filter on it cannot be moved below the decoding (see `_steps`).
    """
    steps = _steps(topic, writers)
    return (
        bronze.where(sf.col("topic") == topic)
        .select("*", sf.map_from_entries("headers").alias("header"))
        .select(*steps.envelope)
        .select("*", *steps.decoded)
        .select(*steps.shown)
    )


@dataclass(frozen=True)
class _Steps:
    """The columns of three consecutive selects."""

    envelope: list[Column]
    """The message, its headers as typed columns, and its body with the end marker."""
    decoded: list[Column]
    """One struct for each Avro record."""
    shown: list[Column]
    """The columns of silver, and what decides about validity."""


@lru_cache(maxsize=64)
def _steps(topic: str, writers: WriterSchemas) -> _Steps:
    """Builds the columns once: they are hundreds of expressions, and each is a call into the JVM."""
    ours = {n: writer for n, writer in writers.readable.items() if writer.topic == topic}
    raw = {writer.record: sf.col(f"raw_{column_of(writer.type)}") for writer in ours.values()}
    # Spark pushes a filter below the select that it reads from and copies that select's expressions into it: every
    # event would be decoded twice. It does not do so for a nondeterministic column, such as the partition's id.
    barrier = sf.spark_partition_id().alias("barrier")
    return _Steps(
        envelope=[*map(sf.col, names(MESSAGE)), *_envelope(ours, writers)],
        decoded=[*_decoded(ours, writers), barrier],
        shown=[
            *map(sf.col, dict.fromkeys(names((*MESSAGE, *EVENT)))),
            *_types(topic, raw, writers),
            _is_valid(raw.values()).alias("is_valid"),
            _left_over(raw.values()).alias("left_over"),
            sf.col("barrier"),
        ],
    )


def _envelope(ours: Mapping[int, EventSchema], writers: WriterSchemas) -> Iterable[Column]:
    kinds = {"stream_version": "int", "event_time": "timestamp"}
    types = {
        n: upcast_chain(writers.schemas.upcasters, writer.record)[0].rpartition(".")[2] for n, writer in ours.items()
    }
    for column, name in HEADERS.items():
        text = sf.col("header")[name].cast("string")
        yield (text.try_cast(kinds[column]) if column in kinds else text).alias(column)
    yield _case((_written_with(n), sf.lit(n)) for n in ours).cast("int").alias("schema_id")
    yield _case((_written_with(n), sf.lit(name)) for n, name in types.items()).cast("string").alias("event_type")
    yield sf.concat(sf.expr(f"substring(value, {PREFIX.size + 1})"), sf.lit(END)).alias("marked")


def _decoded(ours: Mapping[int, EventSchema], writers: WriterSchemas) -> Iterable[Column]:
    """Yields one column per Avro record, whichever version of it wrote the message."""
    for record in dict.fromkeys(writer.record for writer in ours.values()):
        versions = {n: writer for n, writer in ours.items() if writer.record == record}
        name = f"raw_{column_of(record.rpartition('.')[2])}"
        yield _case(
            (sf.col("schema_id") == n, decode_marked(sf.col("marked"), writer, writers.schemas))
            for n, writer in versions.items()
        ).alias(name)


def _types(topic: str, raw: Mapping[str, Column], writers: WriterSchemas) -> Iterable[Column]:
    """Yields one column per current event type, null in rows of other types."""
    for schema in current_events(writers.schemas, topic):
        cases = [
            (is_whole(column), upcast_event(column, record, writers.schemas))
            for record, column in raw.items()
            if upcast_chain(writers.schemas.upcasters, record)[0] == schema.record
        ]
        column = _case(cases) if cases else sf.lit(None).cast(struct_type(schema))
        yield column.alias(column_of(schema.type))


def _is_valid(raw: Iterable[Column]) -> Column:
    named = reduce(and_, (sf.col(column).isNotNull() for column in REQUIRED))
    return named & reduce(or_, map(is_whole, raw), sf.lit(False))


def _left_over(raw: Iterable[Column]) -> Column:
    """Tells whether something else was decoded where the event should end."""
    return reduce(or_, (sf.coalesce(column[END_FIELD] != sf.lit(END), sf.lit(False)) for column in raw), sf.lit(False))


def _written_with(schema_id: int) -> Column:
    return sf.substring("value", 1, PREFIX.size) == sf.lit(PREFIX.pack(MAGIC, schema_id))


def _case(cases: Iterable[tuple[Column, Column]]) -> Column:
    """Chains the cases into one CASE WHEN; null where there are none."""
    first, *more = [*cases, (sf.lit(False), sf.lit(None))]
    return reduce(lambda case, one: case.when(*one), more, sf.when(*first))
