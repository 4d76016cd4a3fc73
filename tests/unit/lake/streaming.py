"""Gold brought up to date in memory, as analytics/layers/speed.py does in Delta: to compare with a batch."""

import json
from collections.abc import Iterable, Mapping, Sequence
from functools import reduce
from typing import Any

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as sf

from analytics.gold.changes import changed, concerned
from analytics.gold.definition import Gold, Scope, Silver, Table, Tally
from analytics.layers.writing import own_session

Key = tuple[Any, ...]
Rows = dict[Key, dict[str, Any]]


def computed(tables: Iterable[Table], silver: Silver) -> dict[str, Rows]:
    """By a batch."""
    scopes = {table.scope: table.scope.seen(silver, kept) for table in tables}
    return rows_of({table: table.compute(scopes[table.scope]) for table in tables})


def rows_of(frames: Mapping[Table, DataFrame]) -> dict[str, Rows]:
    """As text has them, so that it does not matter where they come from."""
    found = _collected({table.name: frame for table, frame in frames.items()})
    return {table.name: _by_key(found[table.name], table) for table in frames}


class Streamed:
    """Tables that have seen some batches."""

    def __init__(self, spark: SparkSession, tables: Sequence[Table]) -> None:
        self._spark = spark
        self._tables = tables
        self._schemas: dict[str, Any] = {}
        self.rows: dict[str, Rows] = {table.name: {} for table in tables}

    def take(self, new: Silver, older: Silver) -> None:
        for scope in {table.scope for table in self._tables}:
            flat = {name: kept(frame) for name, frame in scope.flat(new).items()}
            filters = scope.filters(flat, self._known(scope)) if self._schemas else {}
            there = {table: frame.where(filters.get(table, sf.lit(True))) for table, frame in older.items()}
            found = concerned(scope, flat, scope.flat(there), kept)
            mine = [table for table in self._tables if table.scope is scope]
            frames: dict[str, DataFrame] = {}
            for table in mine:
                if isinstance(table, Tally):
                    frames[table.name] = table.difference(found.before, found.after)
                else:
                    frames[f"{table.name} units"], frames[table.name] = changed(table, found)
            told = _collected(frames)
            for table in mine:
                self._schemas.setdefault(table.name, frames[table.name].schema)
                self._change(table, told)

    def _change(self, table: Table, told: Mapping[str, list[dict[str, Any]]]) -> None:
        rows = self.rows[table.name]
        if isinstance(table, Gold):
            touched = {tuple(unit[c] for c in table.unit) for unit in told[f"{table.name} units"]}
            for key in [key for key, row in rows.items() if tuple(row[c] for c in table.unit) in touched]:
                del rows[key]
            rows |= _by_key(told[table.name], table)
            return
        for key, row in _by_key(told[table.name], table).items():
            old = rows.pop(key, {})
            sums = {figure: old.get(figure, 0) + row[figure] for figure in table.figures}
            if any(sums.values()):
                rows[key] = row | sums

    def _known(self, scope: Scope) -> dict[str, DataFrame]:
        return {name: self._frame(name) for name in scope.known}

    def _frame(self, name: str) -> DataFrame:
        texts = [(json.dumps(row),) for row in self.rows[name].values()]
        parsed = sf.from_json("row", self._schemas[name]).alias("row")
        return self._spark.createDataFrame(texts, "row string").select(parsed).select("row.*")


def without_derived(tables: Sequence[Table], found: Mapping[str, Rows]) -> dict[str, Rows]:
    """Rates and the like follow from the figures, which is for Delta to do."""
    return {
        table.name: {
            key: {c: row[c] for c in row if isinstance(table, Gold) or c in (*table.key, *table.figures)}
            for key, row in found[table.name].items()
        }
        for table in tables
    }


def small(spark: SparkSession) -> SparkSession:
    """For a few rows: as the stream's, without compiling."""
    return own_session(spark, few_rows=True)


def kept(frame: DataFrame) -> DataFrame:
    return frame.localCheckpoint(eager=False)


def _by_key(rows: Iterable[dict[str, Any]], table: Table) -> Rows:
    return {tuple(row.get(column) for column in table.key): row for row in rows}


def _collected(frames: Mapping[str, DataFrame]) -> dict[str, list[dict[str, Any]]]:
    """In one go: a job takes its time, however few the rows."""
    keep_nulls = {"ignoreNullFields": "false"}
    told = [
        frame.select(sf.lit(name).alias("name"), sf.to_json(sf.struct(*frame.columns), keep_nulls).alias("row"))
        for name, frame in frames.items()
    ]
    found: dict[str, list[dict[str, Any]]] = {name: [] for name in frames}
    for one in reduce(DataFrame.unionAll, told).collect():
        found[one["name"]].append(json.loads(one["row"]))
    return found
