"""Reads what silver has received since a cut, and the older rows that it affects: once for all tables at that cut."""

from collections.abc import Iterator
from contextlib import contextmanager
from functools import reduce

from py4j.protocol import Py4JJavaError  # type: ignore[import-untyped]
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame
from pyspark.sql import functions as sf

from analytics.catalog import SILVER_TABLES
from analytics.incremental.affected import find_affected
from analytics.incremental.pruning import Filters, silver_filters
from analytics.incremental.scope import Affected, Inputs, Scope, Silver, Staged
from analytics.lake import Lake
from analytics.log.cut import Cut
from analytics.log.progress import last_computed
from analytics.runtime.frame_cache import FrameCache

EXPIRED = ("FAILED_READ_FILE.FILE_NOT_EXIST", "DELTA_LOG_FILE_NOT_FOUND", "DELTA_VERSION_NOT_FOUND")
"""Delta's error conditions for files that VACUUM deleted, and for commits whose log was cleaned up."""


class ChangeFeed:
    """Silver up to one cut. Everything that is read is cached and shared by the tables that are refreshed together."""

    def __init__(self, lake: Lake, cut: Cut, cache: FrameCache) -> None:
        self.cut = cut
        self.keep = cache.keep
        self._once = cache.once
        self._lake = lake

    def everything(self, scope: Scope) -> Inputs:
        """Inputs from all of silver, for a full recomputation."""
        return self._once(scope, lambda: scope.inputs(scope.stage(self._silver()), self.keep))

    def count(self, since: Cut) -> int:
        """Counts new rows."""
        return self._once(("count", _versions(since)), lambda: _count(self.new_rows(since)))

    def has_expired(self, since: Cut) -> bool:
        """True if silver no longer has the changes since then: history is kept for `lake_history_days`."""
        return self._once(("expired", _versions(since)), lambda: self._has_expired(since))

    def _has_expired(self, since: Cut) -> bool:
        try:
            self.count(since)
        except (PySparkException, Py4JJavaError) as error:
            if not any(condition in str(error) for condition in EXPIRED):
                raise
            return True
        return False

    def share(self, since: Cut) -> float:
        """Share of new rows among all rows."""
        return self.count(since) / max(self._once("count", self._total), 1)

    def new_rows(self, since: Cut) -> Silver:
        return self._once(("new", _versions(since)), lambda: self._new_rows(since))

    def _new_rows(self, since: Cut) -> Silver:
        return Silver({table: self._added(table, since) for table in SILVER_TABLES})

    def affected(self, since: Cut, scope: Scope) -> Affected:
        """Finds what the new rows affect, with all events that are needed to recompute it."""
        return self._once((scope, _versions(since)), lambda: self._affected(since, scope))

    def _affected(self, since: Cut, scope: Scope) -> Affected:
        new = Staged({name: self.keep(frame) for name, frame in scope.stage(self.new_rows(since)).items()})
        filters = self._filters(since, scope, new)
        older = {table: rows.where(filters.get(table, sf.lit(True))) for table, rows in self._silver().items()}
        return find_affected(scope, new, scope.stage(Silver(older)), self.keep)

    def _filters(self, since: Cut, scope: Scope, new: Staged) -> Filters:
        """Filters by the index tables. Where one of them has not seen all older rows, silver is read in full."""
        commits = [last_computed(self._lake, f"gold.{name}") for name in scope.index]
        if not all(commit and _reaches(commit.cut, since) for commit in commits):
            return {}
        index = {name: self._lake.read(f"gold.{name}") for name in scope.index}
        return silver_filters(scope, new, index)

    def _total(self) -> int:
        return sum(self._lake.row_count(f"silver.{t}", version) for t, version in self.cut.silver.items())

    def _silver(self) -> Silver:
        return Silver({t: self._lake.read(f"silver.{t}", self.cut.silver[t]) for t in SILVER_TABLES})

    def _added(self, table: str, since: Cut) -> DataFrame:
        first, last = since.silver[table] + 1, self.cut.silver[table]
        everything = self._silver()[table]
        if first > last:
            return everything.limit(0)
        changes = (
            self._lake.spark.read.format("delta")
            .option("readChangeFeed", "true")
            .option("startingVersion", first)
            .option("endingVersion", last)
            .load(self._lake.path(f"silver.{table}"))
        )
        return self.keep(changes.where("_change_type = 'insert'").select(*everything.columns))


@contextmanager
def open_change_feed(lake: Lake, cut: Cut) -> Iterator[ChangeFeed]:
    with FrameCache() as cache:
        yield ChangeFeed(lake, cut, cache)


def _count(silver: Silver) -> int:
    return reduce(DataFrame.unionAll, (frame.select(sf.lit(1)) for frame in silver.values())).count()


def _versions(cut: Cut) -> tuple[int, ...]:
    return tuple(cut.silver[table] for table in SILVER_TABLES)


def _reaches(cut: Cut, other: Cut) -> bool:
    return all(mine >= others for mine, others in zip(_versions(cut), _versions(other), strict=True))
