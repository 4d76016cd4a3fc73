"""The lake without Spark: the snapshots that delta-rs finds, in a DuckDB that can read these files and nothing else."""

import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass
from datetime import datetime
from functools import partial
from pathlib import Path
from typing import Any

import duckdb
from deltalake import DeltaTable
from deltalake.exceptions import DeltaError

from analytics.commits import versions as versions_of
from analytics.paths import LAYERS, TOPICS, path_of
from analytics.reading.delta_types import duckdb_type, quoted
from analytics.reading.queries import WrongQuery, parsed
from analytics.reading.travel import versions_at
from analytics.reading.wording import no_such_table, worded
from analytics.served import Served, laid_over
from shared.errors import OperatorError
from shared.settings import Settings

SHOWN = (*LAYERS, "replay")
PROMISED = (
    "bronze.events",
    *(f"silver.{name}" for name in (*TOPICS.values(), "quarantine")),
    *(f"gold.{name}" for name in ("sales_per_minute", "product_sales", "funnel", "abandoned_carts", "orders")),
    *(f"gold.{name}" for name in ("fraud_features", "fraud_alerts")),
)
ZONED = "TIMESTAMP WITH TIME ZONE"
CHUNK = 10_000

Words = Callable[[], AbstractContextManager[None]]


@dataclass(frozen=True)
class Answer:
    columns: list[str]
    types: list[str]
    """As DuckDB has them. Moments come as datetimes without a zone; where the type has one, they are in UTC."""
    versions: Mapping[str, int]
    """Of the tables it was read from."""
    rows: Iterator[tuple[Any, ...]]


def found_tables(settings: Settings) -> list[str]:
    """What is there, by name: all tables of a folder, those of the contract in an object store."""
    if "://" in settings.lake:
        return [name for name in PROMISED if DeltaTable.is_deltatable(path_of(settings, name))]
    logs = [log for layer in SHOWN for log in sorted(Path(settings.lake, layer).glob("*/_delta_log"))]
    # One that is being made has no commit yet.
    return [f"{log.parents[1].name}.{log.parent.name}" for log in logs if any(log.glob("*.json"))]


def ask(settings: Settings, sql: str, at: datetime | None = None, versions: Mapping[str, int] | None = None) -> Answer:
    """One SELECT, over the newest versions, or these; or those of a moment, that the tables it reads agree on."""
    connection = duckdb.connect(config={"python_enable_replacements": False, "autoload_known_extensions": False})
    connection.execute("SET TimeZone = 'UTC'")
    query = parsed(connection, sql)
    there = found_tables(settings)
    there += [f"serving.{name.removeprefix('batch.')}" for name in there if name.startswith("batch.")]
    wanted = {name: _stored(name, there) for name in _wanted(settings, query.tables, there)}
    versions = versions_at(settings, wanted.values(), at) if at else versions or {}
    relations = {name: _relation(connection, settings, it, versions.get(it)) for name, it in wanted.items()}
    relations |= {
        name: _served(connection, settings, name, relations[name])
        for name, it in wanted.items()
        if name.startswith("serving.") and it.startswith("speed.")
    }
    words = partial(worded, there, {name: relation.columns for name, relation in relations.items()})
    with words():
        for name, relation in relations.items():
            _define(connection, name, relation)
        _lock(connection, (snapshot for relation in relations.values() for snapshot in relation.snapshots))
        asked = connection.sql(sql)
        kinds = [str(kind) for kind in asked.types]
        connection.execute(_without_zones(sql, kinds, asked))
    seen = {name: relation.version for name, relation in relations.items()}
    return Answer(asked.columns, kinds, seen, _rows(connection, words))


@dataclass(frozen=True)
class _Relation:
    """What a name in a query stands for."""

    version: int
    columns: Mapping[str, str]
    sql: str
    snapshots: tuple[DeltaTable, ...]


def _relation(connection: duckdb.DuckDBPyConnection, settings: Settings, name: str, version: int | None) -> _Relation:
    snapshot = _snapshot(settings, name, version)
    columns = columns_of(snapshot)
    return _Relation(snapshot.version(), columns, _select(connection, snapshot, columns), (snapshot,))


def _served(connection: duckdb.DuckDBPyConnection, settings: Settings, name: str, speed: _Relation) -> _Relation:
    """That of speed, laid over the batch that it belongs to."""
    table = name.removeprefix("serving.")
    newest_first = (v for v in versions_of(settings, f"speed.{table}") if v.number <= speed.version)
    said = next(version.said for version in newest_first if "base" in version.said)
    batch = _relation(connection, settings, f"batch.{table}", laid_over(settings, table, said["base"]))
    sql = Served.told(said["served"]).sql(f"({batch.sql})", f"({speed.sql})", batch.columns, quoted)
    return _Relation(speed.version, batch.columns, sql, (*batch.snapshots, *speed.snapshots))


def _stored(name: str, there: list[str]) -> str:
    """The table whose commits say how far that one is."""
    layer, _, table = name.partition(".")
    if layer != "serving":
        return name
    return f"speed.{table}" if f"speed.{table}" in there else f"batch.{table}"


def _snapshot(settings: Settings, name: str, version: int | None) -> DeltaTable:
    try:
        return DeltaTable(path_of(settings, name), version=version)
    except DeltaError as error:
        at = "" if version is None else f" at version {version}"
        raise OperatorError(f"{name} cannot be read{at}: {' '.join(str(error).split())}") from error


def columns_of(snapshot: DeltaTable) -> dict[str, str]:
    """By name, the type in DuckDB's words."""
    fields = json.loads(snapshot.schema().to_json())["fields"]
    return {field["name"]: duckdb_type(field["type"]) for field in fields}


def _wanted(settings: Settings, asked: Iterable[str], there: list[str]) -> list[str]:
    """Those that the query names. One that names none, like SHOW TABLES, may want any."""
    ours = [name for name in asked if name.partition(".")[0] in (*SHOWN, "serving")]
    for name in ours:
        if name not in there:
            if name in PROMISED or not there:
                raise OperatorError(f"There is no {name} yet in {settings.lake}.", "It is made by: till lake run")
            if name.startswith("serving.") and name.replace("serving.", "gold.") in there:
                raise OperatorError(f"There is no {name} yet: no batch was computed.", "It is made by: till lake batch")
            raise WrongQuery(no_such_table(name, there))
    return ours or there


def _define(connection: duckdb.DuckDBPyConnection, name: str, relation: _Relation) -> None:
    layer, _, table = name.partition(".")
    connection.execute(f"CREATE SCHEMA IF NOT EXISTS {quoted(layer)}")
    connection.execute(f"CREATE VIEW {quoted(layer)}.{quoted(table)} AS {relation.sql}")


def _select(connection: duckdb.DuckDBPyConnection, snapshot: DeltaTable, columns: Mapping[str, str]) -> str:
    """Every column is there, whether all files have it, some, or (in an empty table) none."""
    nothing = ", ".join(f"NULL::{kind} AS {quoted(column)}" for column, kind in columns.items())
    source = f"SELECT {nothing} WHERE false"
    files = snapshot.file_uris()
    if files and "://" in files[0]:
        # DuckDB would need an extension to fetch them; delta-rs has what it takes.
        there = f"files of {snapshot.table_uri} {snapshot.version()}"
        connection.register(there, snapshot.to_pyarrow_dataset())
        source += f" UNION ALL BY NAME SELECT * FROM {quoted(there)}"
    elif files:
        folders = ", ".join(f"{quoted(c)}: {columns[c]}" for c in snapshot.metadata().partition_columns)
        partitions = f"hive_types = {{{folders}}}" if folders else "hive_partitioning = false"
        source += f" UNION ALL BY NAME SELECT * FROM read_parquet({files!r}, union_by_name = true, {partitions})"
    return f"SELECT {', '.join(map(quoted, columns))} FROM ({source})"


def _lock(connection: duckdb.DuckDBPyConnection, snapshots: Iterable[DeltaTable]) -> None:
    """From here on no other file can be opened, no extension loaded, and none of this undone."""
    files = [file for snapshot in snapshots for file in snapshot.file_uris()]
    connection.execute(f"SET allowed_paths = {files!r}")
    connection.execute("SET enable_external_access = false")
    connection.execute("SET lock_configuration = true")


def _without_zones(sql: str, kinds: list[str], asked: duckdb.DuckDBPyRelation) -> str:
    """DuckDB needs another package to give Python a moment with a zone. All of ours are in UTC."""
    if not any(ZONED in kind for kind in kinds):
        return sql
    plain = ", ".join(f"#{n}::{kind.replace(ZONED, 'TIMESTAMP')}" for n, kind in enumerate(kinds, 1))
    return asked.project(plain).sql_query()


def _rows(connection: duckdb.DuckDBPyConnection, words: Words) -> Iterator[tuple[Any, ...]]:
    with words():
        while rows := connection.fetchmany(CHUNK):
            yield from rows
