"""The tables of bronze and silver: where each is, its columns and its properties. Gold's are in analytics/gold."""

import json
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

from deltalake import DeltaTable, Schema
from deltalake.exceptions import TableNotFoundError
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.types import ArrayType, DataType, StructField, StructType

from analytics import storage
from analytics.commits import versions
from analytics.ingest.avro import struct_of
from analytics.paths import LAYERS
from analytics.paths import TOPICS as TOPICS
from analytics.paths import path_of as path_of
from analytics.served import Served, laid_over
from shared.schemas import EventSchema, Schemas, load_schemas
from shared.settings import Settings

ALERTS = "fraud.alerts"

MESSAGE = {
    "topic": "string",
    "partition": "int",
    "offset": "bigint",
    "kafka_time": "timestamp",
    "key": "string",
    "value": "binary",
    "headers": "array<struct<key: string, value: binary>>",
}
EVENT = {
    "event_id": "string",
    "event_type": "string",
    "stream_id": "string",
    "stream_version": "int",
    "event_time": "timestamp",
    "topic": "string",
    "partition": "int",
    "offset": "bigint",
    "schema_id": "int",
    "kafka_time": "timestamp",
    "correlation_id": "string",
    "causation_id": "string",
    "actor": "string",
}
"""What silver has of every event; behind it comes a column for each type."""
QUARANTINE = MESSAGE | {"schema_id": "int", "reason": "string", "event_id": "string"}
SCHEMA = {"schema_id": "int", "text": "string"}
PLACE = ("topic", "partition", "offset", "kafka_time")


@dataclass(frozen=True)
class Table:
    name: str
    columns: StructType
    indexed: tuple[str, ...]
    """Columns whose range is kept for each file: those that are looked for. All of them would be a hundred."""


def read(spark: SparkSession, settings: Settings, name: str, version: int | None = None) -> DataFrame:
    reader = spark.read.format("delta")
    if version is not None:
        reader = reader.option("versionAsOf", version)
    return reader.load(path_of(settings, name))


def create_missing(spark: SparkSession, settings: Settings, schemas: Schemas | None = None) -> None:
    """Tables that are not there, and columns that a table has not got: those of an event that is new."""
    for table in tables(spark, schemas or load_schemas()):
        _create(spark, settings, table)


def table_names(spark: SparkSession, settings: Settings) -> list[str]:
    """All tables that the lake has."""
    return [
        f"{layer}.{name}"
        for layer in LAYERS
        for name in sorted(storage.names(spark, f"{settings.lake}/{layer}"))
        if storage.names(spark, f"{settings.lake}/{layer}/{name}/_delta_log")
    ]


def register(spark: SparkSession, settings: Settings) -> None:
    """Make the tables known by name, in this session: `SELECT ... FROM silver.cart_events`."""
    for layer in LAYERS:
        spark.sql(f"CREATE SCHEMA IF NOT EXISTS {layer} LOCATION '{settings.lake}/{layer}'")
    there = table_names(spark, settings)
    for name in there:
        spark.sql(f"DROP TABLE IF EXISTS {name}")
        spark.sql(f"CREATE TABLE {name} USING delta LOCATION '{path_of(settings, name)}'")
    _register_served(spark, settings, [name.removeprefix("batch.") for name in there if name.startswith("batch.")])


def _register_served(spark: SparkSession, settings: Settings, names: Iterable[str]) -> None:
    """As of now: a view names the versions that belong together."""
    spark.sql(f"CREATE SCHEMA IF NOT EXISTS serving LOCATION '{settings.lake}/serving'")
    for name in names:
        both = f"SELECT * FROM batch.{name}"
        if speed := next((v for v in versions(settings, f"speed.{name}") if "base" in v.said), None):
            batch = f"batch.{name} VERSION AS OF {laid_over(settings, name, speed.said['base'])}"
            columns = spark.table(f"batch.{name}").columns
            both = Served.told(speed.said["served"]).sql(batch, f"speed.{name}", columns, backticks)
        spark.sql(f"CREATE OR REPLACE VIEW serving.{name} AS {both}")


def backticks(name: str) -> str:
    return f"`{name}`"


def tables(spark: SparkSession, schemas: Schemas) -> Iterator[Table]:
    yield Table("bronze.events", struct(MESSAGE), PLACE)
    yield Table("bronze.schemas", struct(SCHEMA), ("schema_id",))
    for topic, name in TOPICS.items():
        found = {column_of(schema.type): struct_of(schema, spark) for schema in living(schemas, topic)}
        types = [StructField(column, _nullable(kind)) for column, kind in found.items()]
        indexed = ("event_id", "event_type", "stream_id", "event_time", *PLACE)
        yield Table(f"silver.{name}", StructType([*struct(EVENT).fields, *types]), indexed)
    yield Table("silver.quarantine", struct(QUARANTINE), PLACE)


def living(schemas: Schemas, topic: str) -> list[EventSchema]:
    """The newest version of each event that is still written; retired ones are read as these."""
    return [schema for schema in schemas.of_topic(topic) if schema.record not in schemas.upcasters]


def column_of(event_type: str) -> str:
    """`ItemAdded` -> `item_added`."""
    return re.sub(r"(?<!^)(?=[A-Z])", "_", event_type).lower()


def _create(spark: SparkSession, settings: Settings, table: Table) -> None:
    """By delta-rs, which takes milliseconds where Spark takes seconds. Spark writes a schema down as Delta does."""
    path = path_of(settings, table.name)
    try:
        there = StructType.fromJson(json.loads(DeltaTable(path).schema().to_json()))
    except TableNotFoundError:
        wanted = Schema.from_json(table.columns.json())
        DeltaTable.create(path, wanted, mode="ignore", configuration=_properties(settings, table))
        return
    if set(_leaves(table.columns)) - set(_leaves(there)):
        nothing = spark.createDataFrame([], table.columns)
        nothing.write.format("delta").mode("append").option("mergeSchema", "true").save(path)


def _properties(settings: Settings, table: Table) -> dict[str, str]:
    kept = f"interval {settings.lake_history_days * 24:.0f} hours"
    return {
        "delta.checkpointInterval": "100",  # every tenth commit is too often for a stream of small batches
        "delta.dataSkippingStatsColumns": ",".join(table.indexed),
        "delta.enableChangeDataFeed": "true",  # costs an append nothing
        "delta.logRetentionDuration": kept,
        "delta.deletedFileRetentionDuration": kept,
    }


def struct(columns: Mapping[str, str]) -> StructType:
    found = StructType.fromDDL(", ".join(f"{name} {kind}" for name, kind in columns.items()))
    assert isinstance(found, StructType)
    return found


def _nullable(kind: DataType) -> DataType:
    """All the way down: Delta keeps no promise of non-null within a list."""
    match kind:
        case StructType():
            return StructType([StructField(field.name, _nullable(field.dataType)) for field in kind.fields])
        case ArrayType():
            return ArrayType(_nullable(kind.elementType))
        case _:
            return kind


def _leaves(kind: DataType, above: str = "") -> Iterator[str]:
    """The full name of every column, and of every field in one."""
    match kind:
        case StructType():
            for field in kind.fields:
                yield f"{above}.{field.name}"
                yield from _leaves(field.dataType, f"{above}.{field.name}")
        case ArrayType():
            yield from _leaves(kind.elementType, above)
