"""One incremental step of a table, from frames alone, to compare with a full recomputation.

The engine's own functions say what changes. How Delta merges it is tested with real tables, in tests/integration.
"""

from dataclasses import dataclass
from functools import reduce
from operator import or_

from pyspark.sql import DataFrame
from pyspark.sql import functions as sf
from pyspark.testing import assertDataFrameEqual

from analytics.incremental.affected import find_affected, recompute_units
from analytics.incremental.definition import GoldTable, Tally
from analytics.incremental.pruning import silver_filters
from analytics.incremental.scope import Affected, Frames, Inputs, Scope, Silver, Staged
from tests.unit.analytics.recomputed import kept


@dataclass(frozen=True)
class Step:
    """Silver before and after some events arrived, and what the engine says they affect."""

    before: Inputs
    after: Inputs
    found: Affected

    def refreshed(self, table: GoldTable) -> DataFrame:
        """The table before the step, changed as the engine says."""
        stored = table.compute(self.before)
        if isinstance(table, Tally):
            columns = (*table.key, *table.figures)
            rows = stored.select(*columns).unionByName(table.difference(self.found.before, self.found.after))
            sums = rows.groupBy(*table.key).agg(*(sf.sum(figure).alias(figure) for figure in table.figures))
            return sums.where(reduce(or_, (sf.col(figure) != 0 for figure in table.figures)))
        units, rows = recompute_units(table, self.found, kept)
        return stored.join(units, on=list(table.unit), how="left_anti").select(*rows.columns).unionByName(rows)

    def assert_equals_full_recomputation(self, table: GoldTable) -> None:
        refreshed = self.refreshed(table)
        expected = table.compute(self.after).select(*refreshed.columns)
        assert not expected.isEmpty(), "a table without rows proves nothing"
        assertDataFrameEqual(refreshed, expected)


def step(scope: Scope, index: tuple[GoldTable, ...], older: Frames, new: Frames) -> Step:
    """Lets the new events arrive. Only older events in the minutes that the index tables name are looked at."""
    staged_older = Staged({name: kept(frame) for name, frame in scope.stage(Silver(older)).items()})
    staged_new = Staged({name: kept(frame) for name, frame in scope.stage(Silver(new)).items()})
    everything = Staged({name: frame.unionByName(staged_new[name]) for name, frame in staged_older.items()})
    before, after = scope.inputs(staged_older, kept), scope.inputs(everything, kept)
    filters = silver_filters(scope, staged_new, {table.name: kept(table.compute(before)) for table in index})
    nearby = Silver({name: frame.where(filters[name]) for name, frame in older.items() if name in filters})
    return Step(before, after, find_affected(scope, staged_new, scope.stage(nearby), kept))
