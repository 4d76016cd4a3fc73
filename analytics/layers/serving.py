"""Lambda: what the batch layer computed at its cut, and what has changed since, as one table.

`batch.*` is computed from bronze now and then, `speed.*` has what the events since then concern, `serving.*` is both.
A commit of speed names the version of batch that it belongs to: while a new batch is not caught up with, the old one
is served.
"""

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as sf

from analytics.cut import Cut
from analytics.gold.changes import changed
from analytics.gold.definition import Gold, Table, Tally
from analytics.layers.news import News
from analytics.layers.writing import state_of, writing
from analytics.served import EMPTY, Served, laid_over
from analytics.tables import backticks, read
from shared.settings import Settings


def serving(spark: SparkSession, settings: Settings, table: Table) -> DataFrame | None:
    """None where there is no batch yet."""
    batch, speed = state_of(settings, f"batch.{table.name}"), state_of(settings, f"speed.{table.name}")
    if batch is None or speed is None:
        return read(spark, settings, f"batch.{table.name}", batch.version) if batch else None
    then = read(spark, settings, f"batch.{table.name}", laid_over(settings, table.name, speed.said["base"]))
    since = read(spark, settings, f"speed.{table.name}", speed.version)
    both = Served.told(speed.said["served"]).sql("{then}", "{since}", then.columns, backticks)
    return spark.sql(both, then=then, since=since)


def served(table: Table) -> Served:
    match table:
        case Tally():
            return Served(key=table.key, figures=table.figures, derived=table.derived)
        case Gold():
            return Served(unit=table.unit)


def keep_fresh(spark: SparkSession, settings: Settings, table: Table, news: News) -> bool:
    """Bring the speed table up to date, or begin it anew for a new batch. Without any batch there is nothing to do.

    Not, where silver cannot tell any more what is new since the batch: what is served stays as it is until the next.
    """
    name = f"speed.{table.name}"
    batch, speed = state_of(settings, f"batch.{table.name}"), state_of(settings, name)
    if batch is None or batch.logic != table.version:
        return True
    anew = speed is None or speed.said["base"] != batch.said_at
    since = batch.cut if speed is None or anew else speed.cut
    if not anew and since.silver == news.cut.silver:
        return True
    if news.forgotten(since):
        return False
    rows, gone = _changes(spark, settings, name, table, news, since, anew)
    commit = writing(spark, settings, name, "speed", table, news.cut, base=batch.said_at, served=served(table).said())
    if anew:
        commit.overwrite(rows, table.key)
    elif isinstance(table, Tally):
        commit.add(rows, table, derived=False)
    else:
        commit.replace(rows, gone, table.key, sf.lit(True))
    now = state_of(settings, name)
    if now is None or now.cut != news.cut:
        commit.nothing()
    return True


def _changes(
    spark: SparkSession, settings: Settings, name: str, table: Table, news: News, since: Cut, anew: bool
) -> tuple[DataFrame, DataFrame]:
    found = news.concerned(since, table.scope)
    if isinstance(table, Tally):
        difference = news.keep(table.difference(found.before, found.after))
        return difference, difference.limit(0)
    units, rows = changed(table, found, news.keep)
    emptied = units.join(rows.select(*table.unit), list(table.unit), "left_anti").withColumn(EMPTY, sf.lit(True))
    marked = news.keep(rows.withColumn(EMPTY, sf.lit(False)).unionByName(emptied, allowMissingColumns=True))
    if anew:
        return marked, marked.limit(0)
    there = read(spark, settings, name).join(sf.broadcast(units), list(table.unit), "left_semi")
    return marked, news.keep(there.select(*table.key).exceptAll(marked.select(*table.key)))
