"""What silver has got since a cut, and the older rows that this concerns: read once for all tables equally far."""

from collections.abc import Iterator
from contextlib import contextmanager
from functools import reduce

from py4j.protocol import Py4JJavaError  # type: ignore[import-untyped]
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as sf

from analytics.cut import TABLES, Cut
from analytics.gold.changes import Concerned, concerned
from analytics.gold.definition import Filters, Scope, Silver
from analytics.keeping import Keeping
from analytics.layers.writing import row_count, state_of
from analytics.tables import path_of, read
from shared.settings import Settings

FORGOTTEN = ("FAILED_READ_FILE.FILE_NOT_EXIST", "DELTA_LOG_FILE_NOT_FOUND", "DELTA_VERSION_NOT_FOUND")
"""What Delta says of files that vacuum took, and of commits whose log was cleaned up."""


class News:
    def __init__(self, spark: SparkSession, settings: Settings, cut: Cut, keeping: Keeping) -> None:
        self.cut = cut
        self.keep = keeping.keep
        self._once = keeping.once
        self._spark = spark
        self._settings = settings

    def everything(self, scope: Scope) -> Silver:
        """Old and new."""
        return self._once(scope, lambda: scope.seen(self._silver(), self.keep))

    def count(self, since: Cut) -> int:
        return self._once(("count", _place(since)), lambda: _count(self.new(since)))

    def forgotten(self, since: Cut) -> bool:
        """Whether silver cannot tell any more what it has got since: old versions are kept for `lake_history_days`."""
        return self._once(("forgotten", _place(since)), lambda: self._is_forgotten(since))

    def _is_forgotten(self, since: Cut) -> bool:
        try:
            self.count(since)
        except (PySparkException, Py4JJavaError) as error:
            if not any(condition in str(error) for condition in FORGOTTEN):
                raise
            return True
        return False

    def share(self, since: Cut) -> float:
        """New rows, of all."""
        return self.count(since) / max(self._once("count", self._total), 1)

    def new(self, since: Cut) -> Silver:
        return self._once(("new", _place(since)), lambda: {table: self._added(table, since) for table in TABLES})

    def concerned(self, since: Cut, scope: Scope) -> Concerned:
        return self._once((scope, _place(since)), lambda: self._concerned(since, scope))

    def _concerned(self, since: Cut, scope: Scope) -> Concerned:
        new = {name: self.keep(frame) for name, frame in scope.flat(self.new(since)).items()}
        filters = self._filters(since, scope, new)
        older = {table: rows.where(filters.get(table, sf.lit(True))) for table, rows in self._silver().items()}
        return concerned(scope, new, scope.flat(older), self.keep)

    def _filters(self, since: Cut, scope: Scope, new: Silver) -> Filters:
        """None, where a table that should tell is not far enough: then all is read."""
        states = [state_of(self._settings, f"gold.{name}") for name in scope.known]
        if not scope.known or not all(state and _reaches(state.cut, since) for state in states):
            return {}
        known = {name: read(self._spark, self._settings, f"gold.{name}") for name in scope.known}
        return scope.filters(new, known)

    def _total(self) -> int:
        return sum(row_count(self._settings, f"silver.{t}", version) for t, version in self.cut.silver.items())

    def _silver(self) -> Silver:
        return {t: read(self._spark, self._settings, f"silver.{t}", self.cut.silver[t]) for t in TABLES}

    def _added(self, table: str, since: Cut) -> DataFrame:
        first, last = since.silver[table] + 1, self.cut.silver[table]
        everything = self._silver()[table]
        if first > last:
            return everything.limit(0)
        changes = (
            self._spark.read.format("delta")
            .option("readChangeFeed", "true")
            .option("startingVersion", first)
            .option("endingVersion", last)
            .load(path_of(self._settings, f"silver.{table}"))
        )
        return self.keep(changes.where("_change_type = 'insert'").select(*everything.columns))


@contextmanager
def news(spark: SparkSession, settings: Settings, cut: Cut) -> Iterator[News]:
    with Keeping() as keeping:
        yield News(spark, settings, cut, keeping)


def _count(silver: Silver) -> int:
    return reduce(DataFrame.unionAll, (frame.select(sf.lit(1)) for frame in silver.values())).count()


def _place(cut: Cut) -> tuple[int, ...]:
    return tuple(cut.silver[table] for table in TABLES)


def _reaches(cut: Cut, other: Cut) -> bool:
    return all(mine >= others for mine, others in zip(_place(cut), _place(other), strict=True))
