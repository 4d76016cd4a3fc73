"""Figures, each booked at its own time: several of them from one row."""

from collections.abc import Mapping, Sequence

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as sf

Entry = tuple[Column, Mapping[str, Column]]
"""When, and what by name. Where there is no when, nothing is booked."""


def booked(rows: DataFrame, about: Sequence[Column], figures: Sequence[str], *entries: Entry) -> DataFrame:
    """A row for each entry: what it is about, when it was (`at`), and all figures."""
    structs = (_struct(when, figures, given) for when, given in entries)
    return rows.select(*about, sf.inline(sf.array(*structs))).where("at IS NOT NULL")


def _struct(when: Column, figures: Sequence[str], given: Mapping[str, Column]) -> Column:
    none = sf.lit(0).cast("bigint")
    values = (sf.coalesce(given.get(name, none).cast("bigint"), none).alias(name) for name in figures)
    return sf.struct(when.alias("at"), *values)
