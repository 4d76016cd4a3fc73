"""Two tables that should be the same, compared row by row, both ways."""

from dataclasses import dataclass
from typing import Any

from pyspark.sql import DataFrame

SHOWN = 20


@dataclass(frozen=True)
class Difference:
    rows: int
    """Of the one that is judged."""
    added: int
    """Keys that only the one that is judged has."""
    gone: int
    """Keys that only the other has."""
    changed: int
    """Keys that both have, with other values."""
    shown: tuple[dict[str, Any], ...]
    """Some of the rows that differ, `side` first: `this` is the one that is judged, `other` what it should be."""
    columns: tuple[str, ...] = ()
    """That only one of them has. They are not compared."""

    @property
    def none(self) -> bool:
        return not (self.added or self.gone or self.changed or self.columns)


def compare(this: DataFrame, other: DataFrame, key: tuple[str, ...]) -> Difference:
    """Both sides have to be written down already: Spark cannot subtract from an aggregate that is still to be made."""
    common = [column for column in this.columns if column in other.columns]
    odd = tuple(sorted(set(this.columns) ^ set(other.columns)))
    mine, theirs = this.select(*common), other.select(*common)
    extra, missing = mine.exceptAll(theirs).persist(), theirs.exceptAll(mine).persist()
    try:
        added = extra.join(missing, list(key), "left_anti").count()
        gone = missing.join(extra, list(key), "left_anti").count()
        changed = extra.join(missing, list(key), "left_semi").count()
        shown = [*_shown("this", extra, key), *_shown("other", missing, key)]
        shown.sort(key=lambda row: tuple(str(row[column]) for column in key))
        return Difference(this.count(), added, gone, changed, tuple(shown), odd)
    finally:
        extra.unpersist()
        missing.unpersist()


def _shown(side: str, rows: DataFrame, key: tuple[str, ...]) -> list[dict[str, Any]]:
    return [{"side": side, **row.asDict(recursive=True)} for row in rows.orderBy(*key).limit(SHOWN).collect()]
