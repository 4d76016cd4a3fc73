"""Events in Spark: decoded with the schema that wrote them, read as the newest version, the retired ones upcast."""

import json
from typing import Any

from pyspark.sql import Column, SparkSession
from pyspark.sql import functions as sf
from pyspark.sql.avro.functions import from_avro
from pyspark.sql.types import StructType

from shared.schemas import EventSchema, Schemas
from shared.upcasters import chain

END = bytes.fromhex("f09fa7be0d5e1a7c3b2941886ed4c9f1")
"""Put behind the bytes of an event and read as a last field of it: it comes out whole only if the event ends there.
Spark itself reads broken bytes as nulls, and does not mind bytes that are left over.
"""
END_FIELD = "end_of_event"
END_TYPE = {"name": END_FIELD, "type": {"type": "fixed", "name": "EndOfEvent", "size": len(END)}}


def as_read_today(body: Column, writer: EventSchema, schemas: Schemas, spark: SparkSession) -> Column:
    """A struct of the fields that today's code knows; null, where the bytes are not exactly an event of `writer`.

    `body` is bare Avro: of a Kafka value, all after the first five bytes.
    """
    event = with_end(sf.concat(body, sf.lit(END)), writer, schemas)
    return sf.when(is_whole(event), today(event, writer.record, schemas, spark))


def with_end(body: Column, writer: EventSchema, schemas: Schemas) -> Column:
    """Of bytes with `END` behind them: the fields of the newest version, and what was found at the end."""
    reader = schemas.newest(writer.record)
    return from_avro(body, _text(writer), {"mode": "PERMISSIVE", "avroSchema": _text(reader)})


def is_whole(event: Column) -> Column:
    return sf.coalesce(event[END_FIELD] == sf.lit(END), sf.lit(False))


def today(event: Column, record: str, schemas: Schemas, spark: SparkSession) -> Column:
    """A whole event as it is read today: without the end, and as what replaced it where it is retired."""
    current, upcast = chain(schemas.upcasters, record)
    if upcast is None:
        return sf.struct(*(event[field["name"]] for field in schemas.newest(record).definition["fields"]))
    return _struct(upcast(event), struct_of(schemas.newest(current), spark))


def struct_of(schema: EventSchema, spark: SparkSession) -> StructType:
    """The type that Spark gives to events of this schema."""
    nothing = spark.createDataFrame([], "body binary")
    found = nothing.select(from_avro("body", schema.text)).schema[0].dataType
    assert isinstance(found, StructType)
    return found


def _text(schema: EventSchema) -> str:
    return json.dumps(schema.definition | {"fields": [*schema.definition["fields"], END_TYPE]})


def _struct(fields: dict[str, Any], wanted: StructType) -> Column:
    """An upcaster adds constants as they are; typed as the schema has them, null becomes a null of some type."""
    return sf.struct(*(_column(fields[f.name]).cast(f.dataType).alias(f.name) for f in wanted.fields))


def _column(value: Any) -> Column:
    return value if isinstance(value, Column) else sf.lit(value)
