"""Writes computed tables: every change is one Delta commit that carries the cut it has seen.

Data and progress are in the same commit, so a crash leaves both or neither (docs/adr/0011).
"""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from functools import reduce
from operator import and_
from typing import Any

from delta.exceptions import DeltaConcurrentModificationException as DeltaConcurrentModificationException
from delta.tables import DeltaTable
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as sf
from pyspark.sql.types import StructType

from analytics.catalog import find_table
from analytics.incremental.definition import GoldTable, RowTable, Tally
from analytics.lake import Lake
from analytics.log.commits import ComputedCommit
from analytics.log.progress import last_computed
from analytics.runtime.codegen import interpret
from analytics.tables import described_fields, update_comments

SESSION_KEYS = {
    "userMetadata": "spark.databricks.delta.commitInfo.userMetadata",
    "txnAppId": "spark.databricks.delta.write.txnAppId",
    "txnVersion": "spark.databricks.delta.write.txnVersion",
}


@dataclass(frozen=True)
class PendingCommit:
    """The next commit of a table, with its metadata and its number.

    If two processes refresh the same table at once, Delta takes one commit with a number and refuses the other. Without
    that, sums would be added twice.
    """

    lake: Lake
    name: str
    """Name of the table with its layer."""
    commit: ComputedCommit
    number: int

    @property
    def path(self) -> str:
        return self.lake.path(self.name)

    def overwrite(self, rows: DataFrame, stats: tuple[str, ...]) -> None:
        """Replaces the whole table; `stats` are the columns whose ranges are kept for each file."""
        writer = _described(rows, self.name).write.format("delta").mode("overwrite").option("overwriteSchema", "true")
        options = {"delta.enableChangeDataFeed": "true", "delta.dataSkippingStatsColumns": ",".join(stats)}
        writer.options(**options, **self._options()).save(self.path)
        update_comments(self.lake, [self.name])

    def advance_cut(self) -> None:
        """Commits the cut alone, unless a change has brought the table to it: no event is looked at a second time."""
        reached = last_computed(self.lake, self.name)
        if reached and reached.cut == self.commit.cut:
            return
        nothing = self.lake.read(self.name).limit(0)
        nothing.write.format("delta").mode("append").options(**self._options()).save(self.path)

    def replace_rows(self, rows: DataFrame, deleted: DataFrame, key: tuple[str, ...], where: Column) -> None:
        """Inserts or updates rows by their key, and deletes those whose keys are in `deleted`."""
        source = rows.withColumn("_deleted", sf.lit(False)).unionByName(
            deleted.withColumn("_deleted", sf.lit(True)), allowMissingColumns=True
        )
        unchanged = reduce(and_, (sf.col(f"t.`{c}`").eqNullSafe(sf.col(f"s.`{c}`")) for c in rows.columns))
        values = {f"`{column}`": sf.col(f"s.`{column}`") for column in rows.columns}
        with commit_options(self.lake.spark, **self._options()):
            (
                self._merge(source, key, where)
                .whenMatchedDelete(sf.col("s._deleted"))
                .whenMatchedUpdate(~unchanged, set=values)
                .whenNotMatchedInsert(~sf.col("s._deleted"), values=values)
                .execute()
            )

    def add_difference(self, difference: DataFrame, tally: Tally, derived: bool = True) -> None:
        """Adds figures to those of the rows with the same key. Rows whose figures all become 0 are deleted."""

        def sum_(figure: str) -> str:
            return f"(t.`{figure}` + s.`{figure}`)"

        def new(name: str) -> str:
            return f"s.`{name}`"

        all_zero = reduce(and_, (sf.expr(sum_(figure)) == 0 for figure in tally.figures))
        updated = {figure: sf.expr(sum_(figure)) for figure in tally.figures}
        inserted = {name: sf.expr(new(name)) for name in (*tally.key, *tally.figures)}
        if derived:
            updated |= tally.derived_columns(sum_)
            inserted |= tally.derived_columns(new)
        with commit_options(self.lake.spark, **self._options()):
            (
                self._merge(difference, tally.key, sf.lit(True))
                .whenMatchedDelete(all_zero)
                .whenMatchedUpdate(set=_quoted(updated))
                .whenNotMatchedInsert(values=_quoted(inserted))
                .execute()
            )

    def _merge(self, source: DataFrame, key: tuple[str, ...], where: Column) -> Any:
        same_key = reduce(and_, (sf.col(f"t.`{column}`").eqNullSafe(sf.col(f"s.`{column}`")) for column in key))
        return DeltaTable.forPath(self.lake.spark, self.path).alias("t").merge(source.alias("s"), same_key & where)

    def _options(self) -> dict[str, str]:
        return {"userMetadata": self.commit.metadata(), "txnAppId": f"till:{self.name}", "txnVersion": str(self.number)}


def begin_commit(lake: Lake, name: str, commit: ComputedCommit) -> PendingCommit:
    """Takes the number after the newest version: of two writers that start from the same version, one wins."""
    newest = next(lake.log(name).versions(1), None)
    return PendingCommit(lake, name, commit, newest.number + 1 if newest else 0)


def _described(rows: DataFrame, name: str) -> DataFrame:
    """Gives each column the catalog's comment; Spark would keep that of the column from which it is computed."""
    if not (table := find_table(name)):
        return rows
    fields = described_fields(rows.schema.jsonValue()["fields"], table)
    return rows.to(StructType.fromJson({"type": "struct", "fields": fields}))


def stats_of(table: GoldTable) -> tuple[str, ...]:
    """Columns by which rows are looked for. Delta keeps their range for each file."""
    time = (table.time,) if isinstance(table, RowTable) else ()
    return tuple(dict.fromkeys((*table.key, *time)))


def _quoted(values: Mapping[str, Column]) -> dict[str, Column]:
    return {f"`{name}`": value for name, value in values.items()}


@contextmanager
def commit_options(spark: SparkSession, **options: str) -> Iterator[None]:
    """Sets options of a MERGE or RESTORE, which take them from their session alone: no other thread may use it."""
    for option, value in options.items():
        spark.conf.set(SESSION_KEYS[option], value)
    try:
        yield
    finally:
        for option in options:
            spark.conf.unset(SESSION_KEYS[option])


def own_session(spark: SparkSession, few_rows: bool = False) -> SparkSession:
    """Opens a session on the same executors, so that the ingest does not see the options of a commit to gold."""
    session = spark.newSession()
    session.conf.set("spark.databricks.delta.merge.materializeSource", "none")  # it is cached already
    if few_rows:
        interpret(session)
    return session
