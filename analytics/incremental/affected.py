"""Finds what new events affect and recomputes it. Works on frames alone: reading and writing happen elsewhere."""

from typing import NamedTuple

from pyspark.sql import DataFrame
from pyspark.sql import functions as sf

from analytics.incremental.definition import RowTable
from analytics.incremental.scope import Affected, Frames, Ids, Keep, Scope, Staged


class Recomputed(NamedTuple):
    units: DataFrame
    rows: DataFrame
    """All current rows of those units."""


def find_affected(scope: Scope, new: Staged, older: Staged, keep: Keep = lambda frame: frame) -> Affected:
    """Collects all events of what the new events affect. The new rows may be among the older ones as well."""
    rows = Staged({name: without(older[name], frame).unionByName(frame) for name, frame in new.items()})
    ids = Ids(_kept(scope.affected_ids(new, rows), keep))
    after = Staged(_kept(scope.restricted_to(rows, ids), keep))
    before = Staged({name: without(frame, new[name]) for name, frame in after.items()})
    return Affected(new, ids, scope.inputs(before, keep), scope.inputs(after, keep))


def recompute_units(table: RowTable, found: Affected, keep: Keep = lambda frame: frame) -> Recomputed:
    """Recomputes the units of a table that new events affect, from all their events."""
    units = keep(table.affected(found))
    rows = table.compute(found.after)
    affected_rows = rows.join(sf.broadcast(units), on=list(table.unit), how="left_semi").select(*rows.columns)
    return Recomputed(units, keep(affected_rows))


def without(rows: DataFrame, new: DataFrame) -> DataFrame:
    """Removes rows of the new events."""
    return rows.join(sf.broadcast(new.select("event_id")), on="event_id", how="left_anti").select(*rows.columns)


def _kept(frames: Frames, keep: Keep) -> Frames:
    return {name: keep(frame) for name, frame in frames.items()}
