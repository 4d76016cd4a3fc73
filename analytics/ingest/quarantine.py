"""Explains in words why a message cannot become an event of silver."""

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as sf

from analytics.catalog.events import QUARANTINE
from analytics.catalog.table import names
from analytics.ingest.silver import HEADERS, REQUIRED, decode
from analytics.ingest.writer_schemas import WriterSchemas
from shared.schemas.codec import MAGIC, PREFIX


def invalid_messages(bronze: DataFrame, topic: str, writers: WriterSchemas) -> DataFrame:
    """Selects a topic's messages that cannot be read, with the reason."""
    found = decode(bronze, topic, writers).where("NOT is_valid AND barrier >= 0")
    explained = found.withColumns({"reason": reason(topic, writers), "schema_id": wire_schema_id().try_cast("int")})
    return explained.select(*names(QUARANTINE))


def is_framed() -> Column:
    """Tells whether a message is in Confluent's wire format: magic byte 0 and four bytes of schema id in front."""
    return (sf.length("value") >= PREFIX.size) & (sf.substring("value", 1, 1) == sf.lit(bytes([MAGIC])))


def wire_schema_id() -> Column:
    """Returns the schema id in front of a message, as text; null where there is none."""
    return sf.when(is_framed(), sf.conv(sf.hex(sf.substring("value", 2, 4)), 16, 10))


def reason(topic: str, writers: WriterSchemas) -> Column:
    """Says why a message of the topic is invalid: the first of these reasons that applies."""
    number = wire_schema_id()
    records = {n: writer.record for n, writer in writers.readable.items()}
    foreign = {n: f"a {w.record} has no place in {topic}" for n, w in writers.readable.items() if w.topic != topic}
    return sf.coalesce(
        sf.when(sf.col("value").isNull(), sf.lit("it has no value")),
        sf.when(~is_framed(), sf.lit("not in the wire format: no magic byte 0 and schema id in front")),
        *(sf.when(sf.col(column).isNull(), _unusable_header(HEADERS[column])) for column in REQUIRED),
        *(sf.when(number == str(n), sf.lit(why)) for n, why in {**writers.unreadable, **foreign}.items()),
        sf.when(
            ~number.isin([str(n) for n in writers.texts]),
            sf.concat(sf.lit("the registry knows no schema with id "), number),
        ),
        *(sf.when(number == str(n), _damage(record)) for n, record in records.items()),
        sf.lit("it cannot be read"),
    )


def _damage(record: str) -> Column:
    return sf.when(sf.col("left_over"), sf.lit(f"bytes are left over after a {record}")).otherwise(
        sf.lit(f"not a {record}: its bytes are broken or cut short")
    )


def _unusable_header(name: str) -> Column:
    found = sf.map_from_entries("headers")[name].cast("string")
    return sf.when(found.isNull(), sf.lit(f"the header {name} is missing")).otherwise(
        sf.concat(sf.lit(f"the header {name} makes no sense: "), found)
    )
