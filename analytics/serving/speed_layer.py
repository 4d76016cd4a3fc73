"""Lambda's speed layer: `speed.*` has what the events since the last batch affect, and nothing else.

A commit of a speed table names the version of the batch table that it belongs to. While the speed layer has not caught
up with a new batch, the old batch is served.
"""

from pyspark.sql import DataFrame
from pyspark.sql import functions as sf

from analytics.incremental.affected import recompute_units
from analytics.incremental.change_feed import ChangeFeed
from analytics.incremental.definition import GoldTable, RowTable, Tally
from analytics.incremental.merge import begin_commit
from analytics.lake import Lake
from analytics.log.commits import ComputedCommit, SpeedCommit
from analytics.log.cut import Cut
from analytics.log.progress import last_computed
from analytics.serving.serving_view import EMPTY, ServingView


def refresh_speed(lake: Lake, table: GoldTable, feed: ChangeFeed) -> bool:
    """Brings the speed table up to date, or starts it again for a new batch. Without a batch there is nothing to do.

    Returns False if silver no longer has the changes since the batch: what is served stays as it is until the next one.
    """
    name = f"speed.{table.name}"
    batch = lake.log(f"batch.{table.name}").newest(ComputedCommit)
    speed = last_computed(lake, name)
    if batch is None or batch.commit.logic != table.version:
        return True
    starts_again = not isinstance(speed, SpeedCommit) or speed.base != batch.version
    since = batch.commit.cut if speed is None or starts_again else speed.cut
    if not starts_again and since.silver == feed.cut.silver:
        return True
    if feed.has_expired(since):
        return False
    commit = SpeedCommit(feed.cut, table.version, batch.version, view_of(table).metadata())
    pending = begin_commit(lake, name, commit)
    changes = _changes(table, feed, since)
    if starts_again:
        pending.overwrite(changes, table.key)
    elif isinstance(table, Tally):
        pending.add_difference(changes, table, derived=False)
    else:
        outdated = feed.keep(_outdated(table, lake.read(name), changes))
        pending.replace_rows(changes, outdated, table.key, sf.lit(True))
    pending.advance_cut()
    return True


def view_of(table: GoldTable) -> ServingView:
    """Tells how rows of a speed table are laid over those of batch."""
    match table:
        case Tally():
            return ServingView(key=table.key, figures=table.figures, derived=table.derived)
        case RowTable():
            return ServingView(unit=table.unit)


def _changes(table: GoldTable, feed: ChangeFeed, since: Cut) -> DataFrame:
    """Differences of sums; or all rows of affected units, and a marked row for each unit that has none left."""
    found = feed.affected(since, table.scope)
    if isinstance(table, Tally):
        return feed.keep(table.difference(found.before, found.after))
    units, rows = recompute_units(table, found, feed.keep)
    emptied = units.join(rows.select(*table.unit), on=list(table.unit), how="left_anti").withColumn(EMPTY, sf.lit(True))
    return feed.keep(rows.withColumn(EMPTY, sf.lit(False)).unionByName(emptied, allowMissingColumns=True))


def _outdated(table: RowTable, stored: DataFrame, changes: DataFrame) -> DataFrame:
    """Keys that the speed table has of affected units and should not have any more.

    A unit without rows has nulls in its key, which `exceptAll` compares as equal and a join would not.
    """
    units = changes.select(*table.unit).distinct()
    of_units = stored.join(sf.broadcast(units), on=list(table.unit), how="left_semi")
    return of_units.select(*table.key).exceptAll(changes.select(*table.key))
