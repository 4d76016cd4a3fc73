"""Compares two tables that should be the same, row by row, both ways."""

from dataclasses import dataclass
from typing import Any

from pyspark.sql import DataFrame

MOST_SHOWN = 20
"""Differing rows that are shown of each side."""


@dataclass(frozen=True)
class Difference:
    """Difference of one table, the judged one, from what it should be."""

    rows: int
    """Number of rows of the judged table."""
    added: int
    """Number of keys that only the judged table has."""
    gone: int
    """Number of keys that only the other table has."""
    changed: int
    """Number of keys that both have, with other values."""
    shown: tuple[dict[str, Any], ...]
    """Some of the rows that differ, `side` first: `this` is the judged table, `other` what it should be."""
    columns: tuple[str, ...] = ()
    """Columns that only one of them has. They are not compared."""

    @property
    def none(self) -> bool:
        return not (self.added or self.gone or self.changed or self.columns)


def compare(this: DataFrame, other: DataFrame, key: tuple[str, ...]) -> Difference:
    """Compares two stored tables: Spark can't subtract from an aggregate that is not computed yet."""
    common = [column for column in this.columns if column in other.columns]
    odd = tuple(sorted(set(this.columns) ^ set(other.columns)))
    mine, theirs = this.select(*common), other.select(*common)
    extra, missing = mine.exceptAll(theirs).persist(), theirs.exceptAll(mine).persist()
    try:
        added = extra.join(missing, on=list(key), how="left_anti").count()
        gone = missing.join(extra, on=list(key), how="left_anti").count()
        changed = extra.join(missing, on=list(key), how="left_semi").count()
        shown = [*_shown("this", extra, key), *_shown("other", missing, key)]
        shown.sort(key=lambda row: tuple(str(row[column]) for column in key))
        return Difference(this.count(), added, gone, changed, tuple(shown), odd)
    finally:
        extra.unpersist()
        missing.unpersist()


def _shown(side: str, rows: DataFrame, key: tuple[str, ...]) -> list[dict[str, Any]]:
    return [{"side": side, **row.asDict(recursive=True)} for row in rows.orderBy(*key).limit(MOST_SHOWN).collect()]
