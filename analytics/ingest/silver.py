"""Silver: bronze's messages decoded by the schema that wrote them, read as today's events.

Functions of frames, so that the stream and a recomputation from bronze give the same rows.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import lru_cache, reduce
from operator import and_, or_

from pyspark.sql import Column, DataFrame, SparkSession, Window
from pyspark.sql import functions as sf

from analytics.ingest.avro import END, END_FIELD, is_whole, struct_of, today, with_end
from analytics.ingest.writers import Writers
from analytics.tables import EVENT, MESSAGE, TOPICS, column_of, living
from shared.codec import MAGIC, PREFIX
from shared.schemas import EventSchema
from shared.upcasters import chain

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


def silver_rows(bronze: DataFrame, table: str, writers: Writers) -> DataFrame:
    """The whole of a silver table (`cart_events`) from the whole of bronze: each event id once."""
    [topic] = [topic for topic, name in TOPICS.items() if name == table]
    first = Window.partitionBy("event_id").orderBy("partition", "offset")
    once = sound(bronze, topic, writers).withColumn("n", sf.row_number().over(first)).where("n = 1")
    return once.select(*silver_columns(topic, writers))


def silver_columns(topic: str, writers: Writers) -> list[str]:
    return [*EVENT, *(column_of(schema.type) for schema in living(writers.schemas, topic))]


def sound(bronze: DataFrame, topic: str, writers: Writers) -> DataFrame:
    """A topic's messages that can be read, as bronze has them, with all columns of silver."""
    return read_today(bronze, topic, writers).where("is_sound AND barrier >= 0")


def read_today(bronze: DataFrame, topic: str, writers: Writers) -> DataFrame:
    """All of a topic's messages with the columns of silver, and whether each `is_sound`, or has bytes `left_over`."""
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
    envelope: list[Column]
    decoded: list[Column]
    shown: list[Column]


@lru_cache(maxsize=64)
def _steps(topic: str, writers: Writers) -> _Steps:
    """Made once: they are hundreds of expressions, and each is a call into the JVM. (A batch of a stream comes with a
    session of its own: for the columns, any will do.)
    """
    spark = SparkSession.active()
    ours = {n: writer for n, writer in writers.readable.items() if writer.topic == topic}
    raw = {writer.record: sf.col(f"raw_{column_of(writer.type)}") for writer in ours.values()}
    # A filter above would be moved below the decoding, and all of it be done twice: this column is not to be moved.
    barrier = sf.spark_partition_id().alias("barrier")
    return _Steps(
        envelope=[*map(sf.col, MESSAGE), *_envelope(ours, writers)],
        decoded=[*_decoded(ours, writers), barrier],
        shown=[
            *map(sf.col, dict.fromkeys([*MESSAGE, *EVENT])),
            *_types(topic, raw, writers, spark),
            _is_sound(raw.values()).alias("is_sound"),
            _left_over(raw.values()).alias("left_over"),
            sf.col("barrier"),
        ],
    )


def _envelope(ours: Mapping[int, EventSchema], writers: Writers) -> Iterable[Column]:
    kinds = {"stream_version": "int", "event_time": "timestamp"}
    types = {n: chain(writers.schemas.upcasters, writer.record)[0].rpartition(".")[2] for n, writer in ours.items()}
    for column, name in HEADERS.items():
        text = sf.col("header")[name].cast("string")
        yield (text.try_cast(kinds[column]) if column in kinds else text).alias(column)
    yield _case((_written_with(n), sf.lit(n)) for n in ours).cast("int").alias("schema_id")
    yield _case((_written_with(n), sf.lit(name)) for n, name in types.items()).cast("string").alias("event_type")
    yield sf.concat(sf.expr(f"substring(value, {PREFIX.size + 1})"), sf.lit(END)).alias("marked")


def _decoded(ours: Mapping[int, EventSchema], writers: Writers) -> Iterable[Column]:
    """One column for each record, whichever of its versions it was."""
    for record in dict.fromkeys(writer.record for writer in ours.values()):
        versions = {n: writer for n, writer in ours.items() if writer.record == record}
        name = f"raw_{column_of(record.rpartition('.')[2])}"
        yield _case(
            (sf.col("schema_id") == n, with_end(sf.col("marked"), writer, writers.schemas))
            for n, writer in versions.items()
        ).alias(name)


def _types(topic: str, raw: Mapping[str, Column], writers: Writers, spark: SparkSession) -> Iterable[Column]:
    """One column for each living type, null in rows of other types."""
    for schema in living(writers.schemas, topic):
        cases = [
            (is_whole(column), today(column, record, writers.schemas, spark))
            for record, column in raw.items()
            if chain(writers.schemas.upcasters, record)[0] == schema.record
        ]
        column = _case(cases) if cases else sf.lit(None).cast(struct_of(schema, spark))
        yield column.alias(column_of(schema.type))


def _is_sound(raw: Iterable[Column]) -> Column:
    named = reduce(and_, (sf.col(column).isNotNull() for column in REQUIRED))
    return named & reduce(or_, map(is_whole, raw), sf.lit(False))


def _left_over(raw: Iterable[Column]) -> Column:
    """Decoded, and something else stood where the event should end."""
    return reduce(or_, (sf.coalesce(column[END_FIELD] != sf.lit(END), sf.lit(False)) for column in raw), sf.lit(False))


def _written_with(schema_id: int) -> Column:
    return sf.substring("value", 1, PREFIX.size) == sf.lit(PREFIX.pack(MAGIC, schema_id))


def _case(cases: Iterable[tuple[Column, Column]]) -> Column:
    """Of no cases at all, null."""
    first, *more = [*cases, (sf.lit(False), sf.lit(None))]
    return reduce(lambda case, one: case.when(*one), more, sf.when(*first))
