"""Books figures at the time to which each belongs: one row may have several of them."""

from collections.abc import Mapping, Sequence

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as sf

Entry = tuple[Column, Mapping[str, Column]]
"""A time, and amounts by figure. Rows in which the time is null are skipped."""


def booked(rows: DataFrame, dimensions: Sequence[Column], figures: Sequence[str], *entries: Entry) -> DataFrame:
    """One row per entry: its dimensions, its time `at`, and all figures, 0 where the entry does not give one."""
    structs = (_struct(when, figures, given) for when, given in entries)
    return rows.select(*dimensions, sf.inline(sf.array(*structs))).where("at IS NOT NULL")


def _struct(when: Column, figures: Sequence[str], given: Mapping[str, Column]) -> Column:
    zero = sf.lit(0).cast("bigint")
    values = (sf.coalesce(given.get(name, zero).cast("bigint"), zero).alias(name) for name in figures)
    return sf.struct(when.alias("at"), *values)
