"""Why a message is not in silver, in words."""

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as sf

from analytics.ingest.silver import HEADERS, REQUIRED, read_today
from analytics.ingest.writers import Writers
from analytics.tables import QUARANTINE
from shared.codec import MAGIC, PREFIX


def unsound(bronze: DataFrame, topic: str, writers: Writers) -> DataFrame:
    """A topic's messages that cannot be read."""
    found = read_today(bronze, topic, writers).where("NOT is_sound AND barrier >= 0")
    explained = found.withColumns({"reason": reason(topic, writers), "schema_id": schema_id().try_cast("int")})
    return explained.select(*QUARANTINE)


def schema_id() -> Column:
    """Of any message that has one, as text."""
    return sf.when(_is_framed(), sf.conv(sf.hex(sf.substring("value", 2, 4)), 16, 10))


def reason(topic: str, writers: Writers) -> Column:
    number = schema_id()
    records = {n: writer.record for n, writer in writers.readable.items()}
    foreign = {n: f"a {w.record} has no place in {topic}" for n, w in writers.readable.items() if w.topic != topic}
    return sf.coalesce(
        sf.when(sf.col("value").isNull(), sf.lit("it has no value")),
        sf.when(~_is_framed(), sf.lit("not in the wire format: no magic byte 0 and schema id in front")),
        *(sf.when(sf.col(column).isNull(), _headless(HEADERS[column])) for column in REQUIRED),
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


def _headless(name: str) -> Column:
    found = sf.map_from_entries("headers")[name].cast("string")
    return sf.when(found.isNull(), sf.lit(f"the header {name} is missing")).otherwise(
        sf.concat(sf.lit(f"the header {name} makes no sense: "), found)
    )


def _is_framed() -> Column:
    return (sf.length("value") >= PREFIX.size) & (sf.substring("value", 1, 1) == sf.lit(bytes([MAGIC])))
