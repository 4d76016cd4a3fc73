"""Brings one table from the cut that it has seen to a later one: recomputes it, or merges what new events affect."""

from collections.abc import Callable
from typing import Literal

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as sf

from analytics.incremental.affected import recompute_units
from analytics.incremental.change_feed import ChangeFeed
from analytics.incremental.definition import GoldTable, RowTable, Tally
from analytics.incremental.merge import PendingCommit, begin_commit, stats_of
from analytics.incremental.pruning import fetch_spans, within
from analytics.incremental.scope import Inputs, Scope
from analytics.lake import Lake
from analytics.log.commits import ComputedCommit, GoldCommit, ReplayCommit
from analytics.log.cut import Cut
from analytics.log.progress import last_computed
from analytics.runtime.codegen import many_rows

Outcome = Literal["up to date", "nothing in it changed", "changed", "recomputed", "waits for a replay"]
MOSTLY_NEW = 0.25
"""Share of new rows from which recomputing a table is faster than merging."""

InputsOf = Callable[[Scope], Inputs]
"""Gives the inputs of a scope, made of all of silver."""


def recompute(lake: Lake, name: str, table: GoldTable, inputs: InputsOf, commit: ComputedCommit) -> None:
    """Computes the whole table in one commit: readers see the old table until they see the new one."""
    begin_commit(lake, name, commit).overwrite(table.compute(inputs(table.scope)), stats_of(table))


def refresh(
    lake: Lake, name: str, kind: type[GoldCommit] | type[ReplayCommit], table: GoldTable, feed: ChangeFeed
) -> Outcome:
    """Brings a gold table, or one that is to become gold, up to the cut of the feed."""
    last, commit = last_computed(lake, name), kind(feed.cut, table.version)
    if last and last.logic != table.version:
        return "waits for a replay"
    if last and last.cut.silver == feed.cut.silver:
        return "up to date"
    if last is None or feed.has_expired(last.cut) or feed.share(last.cut) >= MOSTLY_NEW:
        with many_rows(lake.spark):
            recompute(lake, name, table, feed.everything, commit)
        return "recomputed"
    pending = begin_commit(lake, name, commit)
    merged = feed.count(last.cut) > 0 and _merge_affected(table, feed, last.cut, pending)
    pending.advance_cut()
    return "changed" if merged else "nothing in it changed"


def _merge_affected(table: GoldTable, feed: ChangeFeed, since: Cut, pending: PendingCommit) -> bool:
    """Merges what new events change. Returns False if that is nothing."""
    found = feed.affected(since, table.scope)
    if isinstance(table, Tally):
        difference = feed.keep(table.difference(found.before, found.after))
        if difference.isEmpty():
            return False
        pending.add_difference(difference, table)
        return True
    units, rows = recompute_units(table, found, feed.keep)
    if units.isEmpty():
        return False
    stored = pending.lake.read(pending.name).join(sf.broadcast(units), on=list(table.unit), how="left_semi")
    pending.replace_rows(rows, feed.keep(_outdated(table, stored, rows)), table.key, _where_stored(table, stored))
    return True


def _outdated(table: RowTable, stored: DataFrame, rows: DataFrame) -> DataFrame:
    """Keys that the table has and should not have any more."""
    return stored.select(*table.key).join(sf.broadcast(rows.select(*table.key)), on=list(table.key), how="left_anti")


def _where_stored(table: RowTable, stored: DataFrame) -> Column:
    """A condition in literals on where the stored rows are: MERGE skips all other files."""
    time = f"t.`{table.time}`"
    return within(time, fetch_spans(stored.select(sf.date_trunc("minute", table.time)))) | sf.col(time).isNull()
