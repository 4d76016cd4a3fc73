"""Events in Spark: decoded with the schema that wrote them, read as the newest version, the retired ones upcast."""

from typing import Any

from pyspark.sql import Column, SparkSession
from pyspark.sql import functions as sf
from pyspark.sql.avro.functions import from_avro
from pyspark.sql.types import StructType

from shared.schemas import EventSchema, Schemas
from shared.upcasters import chain


def as_read_today(body: Column, writer: EventSchema, schemas: Schemas, spark: SparkSession) -> Column:
    """A struct of the fields that today's code knows; of nulls, where the bytes are not an event of `writer`.

    `body` is bare Avro: of a Kafka value, all after the first five bytes.
    """
    reader = schemas.newest(writer.record)
    event = from_avro(body, writer.text, {"mode": "PERMISSIVE", "avroSchema": reader.text})
    record, upcast = chain(schemas.upcasters, writer.record)
    if upcast is None:
        return event
    return _struct(upcast(event), struct_of(schemas.newest(record), spark))


def struct_of(schema: EventSchema, spark: SparkSession) -> StructType:
    """The type that Spark gives to events of this schema."""
    nothing = spark.createDataFrame([], "body binary")
    found = nothing.select(from_avro("body", schema.text)).schema[0].dataType
    assert isinstance(found, StructType)
    return found


def _struct(fields: dict[str, Any], wanted: StructType) -> Column:
    """An upcaster adds constants as they are; typed as the schema has them, null becomes a null of some type."""
    return sf.struct(*(_column(fields[f.name]).cast(f.dataType).alias(f.name) for f in wanted.fields))


def _column(value: Any) -> Column:
    return value if isinstance(value, Column) else sf.lit(value)
