"""Care of the lake: small files made into large ones, old versions let go once their time is over.

While it streams, Delta's auto compaction keeps the number of small files bounded; this is for now and then.
"""

from collections.abc import Iterable
from dataclasses import dataclass

from delta.tables import DeltaTable
from pyspark.sql import SparkSession

from analytics import storage
from analytics.tables import path_of
from shared.settings import Settings

LAYERS = ("bronze", "silver", "gold", "batch", "speed")
ORDERED_BY = {"bronze.events": ["topic", "partition", "offset"]}
"""Where a rewrite is worth it: a replay reads one topic, and bronze's files have them all. Silver and gold come in the
order in which they are asked for, that of time.
"""


@dataclass(frozen=True)
class Optimized:
    table: str
    removed: int
    """Files that were made into others."""
    added: int


def table_names(spark: SparkSession, settings: Settings) -> list[str]:
    """All tables that the lake has."""
    return [
        f"{layer}.{name}"
        for layer in LAYERS
        for name in sorted(storage.names(spark, f"{settings.lake}/{layer}"))
        if storage.names(spark, f"{settings.lake}/{layer}/{name}/_delta_log")
    ]


def optimize(
    spark: SparkSession, settings: Settings, names: Iterable[str] | None = None, *, ordered: bool = False
) -> list[Optimized]:
    """Compact these tables, or all. `ordered` also sorts again those where it pays, which rewrites them whole."""
    return [_optimize(spark, settings, name, ordered) for name in names or table_names(spark, settings)]


def vacuum(spark: SparkSession, settings: Settings, names: Iterable[str] | None = None) -> None:
    """Delete files that no version of the last `lake_history_days` needs. Time travel within them keeps working."""
    for name in names or table_names(spark, settings):
        DeltaTable.forPath(spark, path_of(settings, name)).vacuum(settings.lake_history_days * 24)


def _optimize(spark: SparkSession, settings: Settings, name: str, ordered: bool) -> Optimized:
    builder = DeltaTable.forPath(spark, path_of(settings, name)).optimize()
    columns = ORDERED_BY.get(name) if ordered else None
    [row] = (builder.executeZOrderBy(columns) if columns else builder.executeCompaction()).collect()
    return Optimized(name, row["metrics"]["numFilesRemoved"], row["metrics"]["numFilesAdded"])
