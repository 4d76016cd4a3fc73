"""Care of the lake: small files made into large ones, old versions let go once their time is over."""

from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass

from delta.exceptions import DeltaConcurrentModificationException
from delta.tables import DeltaTable
from pyspark.sql import SparkSession

from analytics.tables import TOPICS, path_of, table_names
from shared.settings import Settings

ORDERED_BY = {"bronze.events": ["topic", "partition", "offset"]}
"""Where a rewrite is worth it: a replay reads one topic, and bronze's files have them all. Silver and gold come in the
order in which they are asked for, that of time.
"""


STREAMED = ("bronze.events", *(f"silver.{name}" for name in (*TOPICS.values(), "quarantine")))
EVERY = 96
"""Batches after which a table's small files are put together. Each batch adds one or two."""


HASTY = {"minFileSize": 4 * 2**20, "maxFileSize": 8 * 2**20}
"""The next batch waits. So what was put together once is left alone, and every core has a file to make. `optimize`,
when nobody waits, makes larger ones of them.
"""


@dataclass(frozen=True)
class Optimized:
    table: str
    removed: int
    """Files that were made into others."""
    added: int


def tidy(spark: SparkSession, settings: Settings, batch: int) -> None:
    """While it streams: one table now and then, each in its turn, so that no batch waits for all of them.

    Delta's own auto compaction does it after every batch that has more than one file (tried: two commits for one).
    A thread of its own takes as much from the batches beside it as they wait for it here (tried, on two cores).
    """
    due = [name for n, name in enumerate(STREAMED) if batch and batch % EVERY == n * EVERY // len(STREAMED)]
    if due:
        with suppress(DeltaConcurrentModificationException):  # somebody else is at it
            optimize(_in_haste(spark), settings, due)


def optimize(
    spark: SparkSession, settings: Settings, names: Iterable[str] | None = None, *, ordered: bool = False
) -> list[Optimized]:
    """Compact these tables, or all. `ordered` also sorts again those where it pays, which rewrites them whole."""
    wanted = table_names(spark, settings) if names is None else names
    return [_optimize(spark, settings, name, ordered) for name in wanted]


def vacuum(spark: SparkSession, settings: Settings, names: Iterable[str] | None = None) -> None:
    """Delete files that no version of the last `lake_history_days` needs. Time travel within them keeps working."""
    for name in table_names(spark, settings) if names is None else names:
        DeltaTable.forPath(spark, path_of(settings, name)).vacuum(settings.lake_history_days * 24)


def _in_haste(spark: SparkSession) -> SparkSession:
    session = spark.newSession()
    for name, size in HASTY.items():
        session.conf.set(f"spark.databricks.delta.optimize.{name}", str(size))
    return session


def _optimize(spark: SparkSession, settings: Settings, name: str, ordered: bool) -> Optimized:
    builder = DeltaTable.forPath(spark, path_of(settings, name)).optimize()
    columns = ORDERED_BY.get(name) if ordered else None
    [row] = (builder.executeZOrderBy(columns) if columns else builder.executeCompaction()).collect()
    return Optimized(name, row["metrics"]["numFilesRemoved"], row["metrics"]["numFilesAdded"])
