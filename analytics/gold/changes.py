"""What new events change in gold, in frames alone: where these come from and go to is not known here."""

from typing import NamedTuple

from pyspark.sql import DataFrame
from pyspark.sql import functions as sf

from analytics.gold.definition import EVERYTHING, Gold, Keep, Scope, Silver


class Concerned(NamedTuple):
    new: Silver
    before: Silver
    after: Silver
    """Older rows and new ones: all that is needed to compute again what the new ones change."""


class Changed(NamedTuple):
    units: DataFrame
    rows: DataFrame
    """All that there are of these units now."""


def concerned(scope: Scope, new: Silver, older: Silver, keep: Keep = lambda frame: frame) -> Concerned:
    """Both flat. The new rows may be among the older ones."""
    older = {name: without(rows, new[name]) for name, rows in older.items()}
    rows = {name: older[name].unionByName(frame) for name, frame in new.items()}
    if scope is EVERYTHING:  # too much to be kept
        return Concerned(new, older, rows)
    ids = {name: keep(frame) for name, frame in scope.concerned(new, rows).items()}
    after = {table: keep(frame) for table, frame in scope.narrowed(rows, ids).items()}
    before = {table: without(frame, new[table]) for table, frame in after.items()}
    return Concerned(new, scope.viewed(before, keep), scope.viewed(after, keep))


def changed(gold: Gold, found: Concerned, keep: Keep = lambda frame: frame) -> Changed:
    units = keep(gold.touched(found.new, found.after))
    rows = gold.compute(gold.narrowed(found.after, units))
    return Changed(units, keep(rows.join(sf.broadcast(units), list(gold.unit), "left_semi").select(*rows.columns)))


def without(rows: DataFrame, new: DataFrame) -> DataFrame:
    return rows.join(sf.broadcast(new.select("event_id")), "event_id", "left_anti").select(*rows.columns)
