"""How one table gets from the cut that it has seen to a later one: computed anew, or changed where news concern it."""

from collections.abc import Callable
from typing import Any, Literal

from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as sf

from analytics.cut import Cut
from analytics.gold.changes import changed
from analytics.gold.definition import Gold, Scope, Silver, Table, Tally
from analytics.gold.pruning import spans, within
from analytics.interpreting import many_rows
from analytics.layers.news import News
from analytics.layers.writing import Writing, state_of, stats_of, writing
from analytics.tables import read
from shared.settings import Settings

Done = Literal["up to date", "nothing in it changed", "changed", "recomputed", "waits for a replay"]
MOSTLY_NEW = 0.25
"""From that share of new rows on, to compute all is faster than to change."""


Everything = Callable[[Scope], Silver]
"""All of silver, with the views of a scope."""


def fill(
    spark: SparkSession,
    settings: Settings,
    name: str,
    query: str,
    table: Table,
    silver: Everything,
    cut: Cut,
    **more: Any,
) -> None:
    """All of it, from all of silver: in one commit, so that readers see the old table until they see the new one."""
    commit = writing(spark, settings, name, query, table, cut, **more)
    commit.overwrite(table.compute(silver(table.scope)), stats_of(table))


def advance(spark: SparkSession, settings: Settings, name: str, query: str, table: Table, news: News) -> Done:
    """Of gold, or of a table that is to become gold."""
    state = state_of(settings, name)
    if state and state.logic != table.version:
        return "waits for a replay"
    if state and state.cut.silver == news.cut.silver:
        return "up to date"
    if state is None or news.forgotten(state.cut) or news.share(state.cut) >= MOSTLY_NEW:
        with many_rows(spark):
            fill(spark, settings, name, query, table, news.everything, news.cut)
        return "recomputed"
    commit = writing(spark, settings, name, query, table, news.cut)
    merged = news.count(state.cut) > 0 and _merged(spark, settings, name, table, news, state.cut, commit)
    if said_by(settings, name) != news.cut:
        commit.nothing()
    return "changed" if merged else "nothing in it changed"


def _merged(
    spark: SparkSession, settings: Settings, name: str, table: Table, news: News, since: Cut, commit: Writing
) -> bool:
    """Whether there was something to be merged."""
    found = news.concerned(since, table.scope)
    if isinstance(table, Tally):
        difference = news.keep(table.difference(found.before, found.after))
        if difference.isEmpty():
            return False
        commit.add(difference, table)
        return True
    units, rows = changed(table, found, news.keep)
    if units.isEmpty():
        return False
    gone, where = _there(spark, settings, name, table, units, rows)
    commit.replace(rows, news.keep(gone), table.key, where)
    return True


def said_by(settings: Settings, name: str) -> Cut | None:
    state = state_of(settings, name)
    return state.cut if state else None


def _there(
    spark: SparkSession, settings: Settings, name: str, gold: Gold, units: DataFrame, rows: DataFrame
) -> tuple[DataFrame, Column]:
    """Rows of those units that the table has and should not have any more, and where in it rows of the units are."""
    there = read(spark, settings, name).join(sf.broadcast(units), list(gold.unit), "left_semi")
    gone = there.select(*gold.key).join(sf.broadcast(rows.select(*gold.key)), list(gold.key), "left_anti")
    if not gold.time:
        return gone, sf.lit(True)
    time = f"t.`{gold.time}`"
    return gone, within(time, spans(there.select(sf.date_trunc("minute", gold.time)))) | sf.col(time).isNull()
