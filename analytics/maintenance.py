"""Maintenance of the tables: compacts small files, and deletes files that no kept version needs."""

from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass

from delta.exceptions import DeltaConcurrentModificationException
from delta.tables import DeltaTable
from pyspark.sql import SparkSession

from analytics.catalog import LAYERS, SILVER_TABLES
from analytics.lake import Lake

Z_ORDERED = {"bronze.events": ["topic", "partition", "offset"]}
"""Tables that are worth sorting: a replay reads one topic, and files of bronze contain all of them. Rows of silver and
gold arrive in the order in which they are read, that of time.
"""
STREAMED = ("bronze.events", *(f"silver.{name}" for name in (*SILVER_TABLES, "quarantine")))
COMPACT_EVERY = 96
"""Batches after which a table is compacted. Each batch adds one or two files."""
STREAMING_SIZES = {"minFileSize": 4 * 2**20, "maxFileSize": 8 * 2**20}
"""File sizes for a compaction while a batch waits: small enough that a file is compacted once and every core has one
to write. `optimize`, for which no batch waits, makes larger ones of them.
"""


@dataclass(frozen=True)
class Optimized:
    table: str
    removed: int
    """Files that were replaced."""
    added: int


def compact_in_turn(lake: Lake, batch: int) -> None:
    """Compacts one table every few batches, each in its turn, so that no batch waits for all of them.

    Two alternatives were tried. Delta's auto compaction makes a second commit after every batch that adds more than one
    file. A compaction in a background thread slows the next batches down by as much as one batch waits here (on two
    cores).
    """
    turns = {name: n * COMPACT_EVERY // len(STREAMED) for n, name in enumerate(STREAMED)}
    due = [name for name, turn in turns.items() if batch and batch % COMPACT_EVERY == turn]
    if due:
        with suppress(DeltaConcurrentModificationException):  # another process compacts it
            optimize(lake.in_session(_streaming_session(lake.spark)), due)


def optimize(lake: Lake, names: Iterable[str] | None = None, *, ordered: bool = False) -> list[Optimized]:
    """Compacts these tables, or all. `ordered` also sorts those where it pays, which rewrites them completely."""
    return [_optimize(lake, name, ordered) for name in (stored_tables(lake) if names is None else names)]


def vacuum(lake: Lake, names: Iterable[str] | None = None) -> None:
    """Deletes files that no version of the last `lake_history_days` needs. Time travel within them keeps working."""
    for name in stored_tables(lake) if names is None else names:
        DeltaTable.forPath(lake.spark, lake.path(name)).vacuum(lake.settings.lake_history_days * 24)


def stored_tables(lake: Lake) -> list[str]:
    """Names the tables that are maintained: all but those of an unfinished replay."""
    return [name for name in lake.tables() if name.partition(".")[0] in LAYERS]


def _streaming_session(spark: SparkSession) -> SparkSession:
    session = spark.newSession()
    for name, size in STREAMING_SIZES.items():
        session.conf.set(f"spark.databricks.delta.optimize.{name}", str(size))
    return session


def _optimize(lake: Lake, name: str, ordered: bool) -> Optimized:
    builder = DeltaTable.forPath(lake.spark, lake.path(name)).optimize()
    columns = Z_ORDERED.get(name) if ordered else None
    [row] = (builder.executeZOrderBy(columns) if columns else builder.executeCompaction()).collect()
    return Optimized(name, row["metrics"]["numFilesRemoved"], row["metrics"]["numFilesAdded"])
