"""Decodes Avro in Spark: with the schema that wrote an event, to the newest version of it, retired types upcast."""

import json
from typing import Any

from pyspark.sql import Column
from pyspark.sql import functions as sf
from pyspark.sql.avro.functions import from_avro

from analytics.catalog.avro_types import delta_type, record_columns
from analytics.catalog.table import sql_type
from shared.schemas.contract.event_schemas import EventSchema, Schemas
from shared.schemas.contract.upcasting import upcast_chain

END = bytes.fromhex("f09fa7be0d5e1a7c3b2941886ed4c9f1")
"""Appended to the bytes of an event and decoded as its last field: it comes out whole only if the event ends there.
Spark itself decodes broken bytes to nulls, and ignores bytes that are left over.
"""
END_FIELD = "end_of_event"
END_TYPE = {"name": END_FIELD, "type": {"type": "fixed", "name": "EndOfEvent", "size": len(END)}}


def decode_marked(body: Column, writer: EventSchema, schemas: Schemas) -> Column:
    """Decodes Avro bytes that `END` was appended to: the fields of the newest version, and the end that was found."""
    reader = schemas.newest(writer.record)
    return from_avro(body, _with_end(writer), {"mode": "PERMISSIVE", "avroSchema": _with_end(reader)})


def is_whole(event: Column) -> Column:
    """Tells whether a decoded event ends exactly where its bytes do."""
    return sf.coalesce(event[END_FIELD] == sf.lit(END), sf.lit(False))


def upcast_event(event: Column, record: str, schemas: Schemas) -> Column:
    """Turns a whole decoded event into its current type, without the end marker."""
    current, upcast = upcast_chain(schemas.upcasters, record)
    if upcast is None:
        return sf.struct(*(event[field["name"]] for field in schemas.newest(record).definition["fields"]))
    return _struct(upcast(event), schemas.newest(current))


def struct_type(schema: EventSchema) -> str:
    """Returns the type of an event in Spark's SQL."""
    return sql_type(delta_type(schema.definition))


def _with_end(schema: EventSchema) -> str:
    return json.dumps(schema.definition | {"fields": [*schema.definition["fields"], END_TYPE]})


def _struct(values: dict[str, Any], schema: EventSchema) -> Column:
    """Builds a struct of the schema's types: an upcaster adds constants, and even null has to have a type."""
    columns = record_columns(schema.definition)
    return sf.struct(*(_column(values[c.name]).cast(sql_type(c.type)).alias(c.name) for c in columns))


def _column(value: Any) -> Column:
    return value if isinstance(value, Column) else sf.lit(value)
