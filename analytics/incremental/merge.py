"""Tables that are computed from silver, in any layer: what a commit of theirs says, and how a change is written."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from functools import reduce
from operator import and_
from typing import Any

from delta.exceptions import DeltaConcurrentModificationException as DeltaConcurrentModificationException
from delta.tables import DeltaTable
from deltalake import DeltaTable as RustTable
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as sf

from analytics.commits import versions
from analytics.cut import Cut, told
from analytics.gold.definition import Gold, Table, Tally
from analytics.interpreting import interpret
from analytics.tables import path_of, read
from shared.settings import Settings

CONFIGURED = {
    "userMetadata": "spark.databricks.delta.commitInfo.userMetadata",
    "txnAppId": "spark.databricks.delta.write.txnAppId",
    "txnVersion": "spark.databricks.delta.write.txnVersion",
}


@dataclass(frozen=True)
class State:
    """How far a table is. It is in the table's own commits: data and progress come together, or not at all."""

    version: int
    """Newest version of the table."""
    said_at: int
    """Version of the commit that says the rest. Newer ones are compactions."""
    cut: Cut
    logic: int
    said: Mapping[str, Any]


def state_of(settings: Settings, name: str) -> State | None:
    """None where the table is not there, or was never filled."""
    newest = None
    for version in versions(settings, name):
        newest = version.number if newest is None else newest
        if "silver" in version.said:
            return State(newest, version.number, told(version.said), version.said["logic"], version.said)
    return None


def row_count(settings: Settings, name: str, version: int) -> int:
    """As its files say, without reading them."""
    files: Any = RustTable(path_of(settings, name), version=version).get_add_actions(flatten=True)
    return sum(files["num_records"].to_pylist())


@dataclass(frozen=True)
class Writing:
    """One commit to come: what it will say, and that it is for a table as it is now.

    If two bring the same table up to date at once, Delta takes one commit with a number and refuses the other: sums
    would be added twice.
    """

    spark: SparkSession
    settings: Settings
    name: str
    """With its layer."""
    metadata: str
    number: int

    @property
    def path(self) -> str:
        return path_of(self.settings, self.name)

    def overwrite(self, rows: DataFrame, stats: tuple[str, ...]) -> None:
        writer = rows.write.format("delta").mode("overwrite").option("overwriteSchema", "true")
        options = {"delta.enableChangeDataFeed": "true", "delta.dataSkippingStatsColumns": ",".join(stats)}
        writer.options(**options, **self._options()).save(self.path)

    def nothing(self) -> None:
        """No row changes, but the cut does: what was looked at need not be looked at again."""
        nothing = read(self.spark, self.settings, self.name).limit(0)
        nothing.write.format("delta").mode("append").options(**self._options()).save(self.path)

    def replace(self, rows: DataFrame, gone: DataFrame, key: tuple[str, ...], where: Column) -> None:
        """Put these rows in, each for the one with its key if there is one, and take away those that are gone."""
        source = rows.withColumn("_gone", sf.lit(False)).unionByName(
            gone.withColumn("_gone", sf.lit(True)), allowMissingColumns=True
        )
        same = reduce(and_, (sf.col(f"t.`{c}`").eqNullSafe(sf.col(f"s.`{c}`")) for c in rows.columns))
        values = {f"`{column}`": sf.col(f"s.`{column}`") for column in rows.columns}
        with configured(self.spark, **self._options()):
            (
                self._merge(source, key, where)
                .whenMatchedDelete(sf.col("s._gone"))
                .whenMatchedUpdate(~same, set=values)
                .whenNotMatchedInsert(~sf.col("s._gone"), values=values)
                .execute()
            )

    def add(self, difference: DataFrame, tally: Tally, derived: bool = True) -> None:
        def sum_(figure: str) -> str:
            return f"(t.`{figure}` + s.`{figure}`)"

        def new(name: str) -> str:
            return f"s.`{name}`"

        none_left = reduce(and_, (sf.expr(sum_(figure)) == 0 for figure in tally.figures))
        changed = {figure: sf.expr(sum_(figure)) for figure in tally.figures}
        inserted = {name: sf.expr(new(name)) for name in (*tally.key, *tally.figures)}
        if derived:
            changed |= tally.follows(sum_)
            inserted |= tally.follows(new)
        with configured(self.spark, **self._options()):
            (
                self._merge(difference, tally.key, sf.lit(True))
                .whenMatchedDelete(none_left)
                .whenMatchedUpdate(set=_quoted(changed))
                .whenNotMatchedInsert(values=_quoted(inserted))
                .execute()
            )

    def _merge(self, source: DataFrame, key: tuple[str, ...], where: Column) -> Any:
        same = reduce(and_, (sf.col(f"t.`{column}`").eqNullSafe(sf.col(f"s.`{column}`")) for column in key))
        return DeltaTable.forPath(self.spark, self.path).alias("t").merge(source.alias("s"), same & where)

    def _options(self) -> dict[str, str]:
        return {"userMetadata": self.metadata, "txnAppId": f"till:{self.name}", "txnVersion": str(self.number)}


def writing(
    spark: SparkSession, settings: Settings, name: str, query: str, table: Table, cut: Cut, **more: Any
) -> Writing:
    newest = next(versions(settings, name, 1), None)
    metadata = cut.metadata(query, logic=table.version, **more)
    return Writing(spark, settings, name, metadata, newest.number + 1 if newest else 0)


def stats_of(table: Table) -> tuple[str, ...]:
    """Columns whose ranges are kept for each file: by which rows are looked for."""
    time = (table.time,) if isinstance(table, Gold) and table.time and table.time not in table.key else ()
    return (*table.key, *time)


def _quoted(values: Mapping[str, Column]) -> dict[str, Column]:
    return {f"`{name}`": value for name, value in values.items()}


@contextmanager
def configured(spark: SparkSession, **options: str) -> Iterator[None]:
    """For a MERGE or RESTORE, which take no options but those of their session: it must be nobody else's."""
    for option, value in options.items():
        spark.conf.set(CONFIGURED[option], value)
    try:
        yield
    finally:
        for option in options:
            spark.conf.unset(CONFIGURED[option])


def own_session(spark: SparkSession, few_rows: bool = False) -> SparkSession:
    """On the same executors; but what is configured for a commit of gold is not seen by the ingest."""
    session = spark.newSession()
    session.conf.set("spark.databricks.delta.merge.materializeSource", "none")  # it is kept already
    if few_rows:
        interpret(session)
    return session
