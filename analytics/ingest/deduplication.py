"""Events that came before: the same id, in this batch or in the table. The first stays; a later one that is not, byte
for byte, the same is a contradiction.

The cost is that of the batch, not of the table: ids are UUIDv7, so what came before is looked for only among files
whose range of ids meets that of the batch.
"""

from collections.abc import Iterable, Sequence
from functools import reduce
from itertools import pairwise
from operator import or_

from pyspark.sql import Column, DataFrame, SparkSession, Window
from pyspark.sql import functions as sf

from analytics.tables import read
from shared.settings import Settings

PREFIX = 8
"""Digits of a UUIDv7 that stay the same for 65 seconds."""
UPPER = "~"
"""Above every digit: ids that begin like the upper bound of a range are below it."""
MOST_RANGES = 16

Range = tuple[str, str]


def ranges_of(prefixes: Iterable[str]) -> list[Range]:
    """Few ranges that hold all ids which begin so: cut where the gaps between them are widest."""
    ordered = sorted(set(prefixes))
    if not ordered:
        return []
    gaps = sorted(range(1, len(ordered)), key=lambda n: _gap(ordered[n - 1], ordered[n]), reverse=True)
    cuts = [0, *sorted(gaps[: MOST_RANGES - 1]), len(ordered)]
    return [(ordered[low], ordered[high - 1]) for low, high in pairwise(cuts)]


def within(ranges: Sequence[Range]) -> Column:
    return reduce(or_, (sf.col("event_id").between(low, f"{high}{UPPER}") for low, high in ranges), sf.lit(False))


def before(spark: SparkSession, settings: Settings, table: str, prefixes: Iterable[str]) -> DataFrame:
    """Of a silver table, the events whose ids begin like these."""
    return read(spark, settings, f"silver.{table}").where(within(ranges_of(prefixes)))


def told_apart(events: DataFrame, earlier: DataFrame) -> DataFrame:
    """With `first`: the place (partition, offset) of the first event with that id; null where it is this one."""
    place = sf.struct("partition", "offset")
    known = earlier.select("event_id", place.alias("before"))
    here = sf.first(place).over(Window.partitionBy("event_id").orderBy("partition", "offset"))
    found = events.withColumn("here", here).join(known, "event_id", "left")
    first = sf.coalesce("before", sf.when(sf.col("here") != place, sf.col("here")))
    return found.withColumn("first", first).drop("here", "before")


def contradictions(later: DataFrame, bronze: DataFrame) -> DataFrame:
    """With the reason why: those that are not the same as the first with their id. (One may be found to be itself.)"""
    original = bronze.select(
        sf.col("topic").alias("its_topic"),
        sf.struct("partition", "offset").alias("its_place"),
        sf.col("value").alias("its_value"),
        sf.col("headers").alias("its_headers"),
    )
    same = (
        (sf.col("topic") == sf.col("its_topic"))
        & (sf.col("first") == sf.col("its_place"))
        & (sf.col("value") == sf.col("its_value"))
        & (sf.col("headers") == sf.col("its_headers"))
    )
    where = sf.concat_ws("/", "topic", "first.partition", "first.offset")
    why = sf.concat(sf.lit("it contradicts the event at "), where, sf.lit(": the same id, and not the same bytes"))
    others = later.where(sf.col("first") != sf.struct("partition", "offset"))
    return others.join(original, same, "left_anti").withColumn("reason", why)


def _gap(low: str, high: str) -> int:
    try:
        return int(high, 16) - int(low, 16)
    except ValueError:  # ids that are not ours
        return 0
