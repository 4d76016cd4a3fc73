"""Finds events that were ingested before, by their id, in the batch or in the table.

The first event with an id stays. A later one with the same bytes is dropped; one with other bytes is a contradiction
and goes to quarantine. The cost depends on the batch, not on the table: ids are UUIDv7, so only files whose range of
ids overlaps that of the batch are searched.
"""

from collections.abc import Iterable, Sequence
from functools import reduce
from itertools import pairwise
from operator import or_

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as sf

from analytics.lake import Lake

PREFIX = 8
"""Leading digits of a UUIDv7 that stay the same for 65 seconds."""
UPPER = "~"
"""Sorts after every digit: an id that begins like the upper bound of a range is still within it."""
MOST_RANGES = 16

Range = tuple[str, str]


def ranges_of(prefixes: Iterable[str]) -> list[Range]:
    """Returns few ranges that contain all ids with these prefixes, split where the gaps between them are widest."""
    ordered = sorted(set(prefixes))
    if not ordered:
        return []
    gaps = sorted(range(1, len(ordered)), key=lambda n: _gap(ordered[n - 1], ordered[n]), reverse=True)
    cuts = [0, *sorted(gaps[: MOST_RANGES - 1]), len(ordered)]
    return [(ordered[low], ordered[high - 1]) for low, high in pairwise(cuts)]


def earlier_events(lake: Lake, table: str, prefixes: Iterable[str]) -> DataFrame:
    """Reads the rows of a silver table whose ids may be among those with these prefixes."""
    return lake.read(f"silver.{table}").where(_in_ranges(ranges_of(prefixes)))


def with_first_occurrence(events: DataFrame, earlier: DataFrame) -> DataFrame:
    """Adds `first`: the place (partition, offset) of the first event with the same id; null in that event itself.

    `earlier` may contain an event of the batch itself, if the batch is written again after a crash.
    """
    place = sf.struct("partition", "offset")
    in_table = earlier.select("event_id", place.alias("first_in_table"))
    in_batch = sf.first(place).over(Window.partitionBy("event_id").orderBy("partition", "offset"))
    joined = events.withColumn("first_in_batch", in_batch).join(in_table, on="event_id", how="left")
    repeated = sf.when(sf.col("first_in_batch") != place, sf.col("first_in_batch"))
    return joined.withColumn("first", sf.coalesce("first_in_table", repeated)).drop("first_in_batch", "first_in_table")


def contradictions(repeated: DataFrame, bronze: DataFrame) -> DataFrame:
    """Selects repeated events whose bytes differ from those of the first with their id, and adds the `reason`."""
    original = bronze.select(
        sf.col("topic").alias("first_topic"),
        sf.struct("partition", "offset").alias("first_place"),
        sf.col("value").alias("first_value"),
        sf.col("headers").alias("first_headers"),
    )
    same = (
        (sf.col("topic") == sf.col("first_topic"))
        & (sf.col("first") == sf.col("first_place"))
        & (sf.col("value") == sf.col("first_value"))
        & (sf.col("headers") == sf.col("first_headers"))
    )
    where = sf.concat_ws("/", "topic", "first.partition", "first.offset")
    why = sf.concat(sf.lit("it contradicts the event at "), where, sf.lit(": the same id, and not the same bytes"))
    others = repeated.where(sf.col("first") != sf.struct("partition", "offset"))
    return others.join(original, on=same, how="left_anti").withColumn("reason", why)


def _in_ranges(ranges: Sequence[Range]) -> Column:
    return reduce(or_, (sf.col("event_id").between(low, f"{high}{UPPER}") for low, high in ranges), sf.lit(False))


def _gap(low: str, high: str) -> int:
    try:
        return int(high, 16) - int(low, 16)
    except ValueError:  # an id that is not a UUID
        return 0
