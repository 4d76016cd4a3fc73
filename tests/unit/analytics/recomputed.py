"""Gold as a full recomputation makes it: the oracle for every test of incremental refresh."""

from collections.abc import Iterable, Mapping
from datetime import UTC, datetime
from typing import Any

from pyspark.sql import DataFrame, SparkSession

from analytics.incremental.definition import GoldTable
from analytics.incremental.merge import own_session
from analytics.incremental.scope import Silver

Rows = dict[tuple[Any, ...], dict[str, Any]]


def recomputed(tables: Iterable[GoldTable], silver: Mapping[str, DataFrame]) -> dict[str, DataFrame]:
    """Computes the tables, by name, from all of silver."""
    inputs = {scope: scope.inputs(scope.stage(Silver(silver)), kept) for scope in {table.scope for table in tables}}
    return {table.name: table.compute(inputs[table.scope]) for table in tables}


def rows_by_key(table: GoldTable, frame: DataFrame) -> Rows:
    """Collects rows as dictionaries, with times in UTC."""
    rows = [_plain(row.asDict(recursive=True)) for row in frame.collect()]
    return {tuple(row[column] for column in table.key): row for row in rows}


def small(spark: SparkSession) -> SparkSession:
    """Opens a session for a few rows, which interprets plans as the refresh of gold does."""
    return own_session(spark, few_rows=True)


def kept(frame: DataFrame) -> DataFrame:
    return frame.localCheckpoint(eager=False)


def _plain(value: Any) -> Any:
    match value:
        case datetime():
            return value.astimezone(UTC)  # PySpark gives naive times of this machine's zone
        case dict():
            return {name: _plain(inner) for name, inner in value.items()}
        case list():
            return [_plain(inner) for inner in value]
        case _:
            return value
