"""Kappa: a change of logic is a replay. From the beginning into a table beside the live one, compared, then swapped.

The swap is one commit to the live table, with the rows of the new one: readers see the old or the new, never both, and
the way back is a version of the same table. A replay that dies has touched nothing but the table beside.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from delta.tables import DeltaTable
from pyspark.sql import SparkSession

from analytics import storage
from analytics.commits import versions
from analytics.cut import Cut, present, told
from analytics.gold import GOLD
from analytics.gold.definition import Table
from analytics.layers.advancing import advance, fill
from analytics.layers.comparing import Difference, compare
from analytics.layers.news import news
from analytics.layers.rebuilding import Source, rebuilt
from analytics.layers.writing import (
    DeltaConcurrentModificationException,
    Writing,
    configured,
    own_session,
    state_of,
    stats_of,
    writing,
)
from analytics.tables import path_of, read
from shared.errors import OperatorError
from shared.settings import Settings

ATTEMPTS = 5
"""While gold is streamed, the live table moves on: the new one catches up, and it is tried again."""


@dataclass(frozen=True)
class Replayed:
    name: str
    cut: Cut
    difference: Difference | None
    """From the live table at the same cut; None where there was none."""
    swapped: bool


def replay(
    spark: SparkSession,
    settings: Settings,
    name: str,
    source: Source = "bronze",
    progress: Callable[[str], None] = lambda _line: None,
    swap: bool = True,
    tables: Sequence[Table] = GOLD,
) -> Replayed:
    """`name` without its layer. Without `swap`, the new table stays beside the live one, as `replay.*`."""
    table, session = _named(name, tables), own_session(spark)
    beside = f"replay.{name}"
    _begin(session, settings, table, beside, source, progress)
    for _ in range(ATTEMPTS):
        cut, difference = _compared(session, settings, table, beside)
        if difference:
            progress(f"{difference.added} rows added, {difference.gone} gone, {difference.changed} changed")
        if not swap:
            return Replayed(name, cut, difference, swapped=False)
        if _swapped(session, settings, table, beside):
            storage.remove(session, path_of(settings, beside))
            progress(f"gold.{name}: swapped")
            return Replayed(name, cut, difference, swapped=True)
        progress(f"gold.{name} has moved on, catching up")
    raise OperatorError(f"gold.{name} moves on faster than replay.{name}.", "Stop till lake stream meanwhile.")


def undo(spark: SparkSession, settings: Settings, name: str, tables: Sequence[Table] = GOLD) -> Cut:
    """Back to what was live before the last swap; the cut that it has seen."""
    table, session = _named(name, tables), own_session(spark)
    live = f"gold.{table.name}"
    last = next((v for v in versions(settings, live) if v.said.keys() & {"before", "undone"}), None)
    if last is None or "undone" in last.said:
        raise OperatorError(f"gold.{name} has had no replay that could be undone.")
    before = next(v for v in versions(settings, live) if v.number <= last.said["before"] and "silver" in v.said)
    cut = told(before.said)
    metadata = cut.metadata("gold", logic=before.said["logic"], undone=last.number)
    with configured(session, userMetadata=metadata):
        DeltaTable.forPath(session, path_of(settings, live)).restoreToVersion(last.said["before"])
    return cut


def _begin(
    spark: SparkSession,
    settings: Settings,
    table: Table,
    beside: str,
    source: Source,
    progress: Callable[[str], None],
) -> None:
    """Always from the start: what a replay that died has left is thrown away."""
    live = state_of(settings, f"gold.{table.name}")
    cut = live.cut if live else present(settings)
    if cut is None:
        raise OperatorError("There is nothing in the lake yet.", "Fill it with: till lake run")
    storage.remove(spark, path_of(settings, beside))
    progress(f"reading {source} from the beginning, up to batch {cut.batch} of the ingest")
    with rebuilt(spark, settings, cut, "replay", source) as silver:
        fill(spark, settings, beside, "replay", table, silver, cut)


def _compared(spark: SparkSession, settings: Settings, table: Table, beside: str) -> tuple[Cut, Difference | None]:
    """At the cut that the live table has seen by now."""
    live, new = state_of(settings, f"gold.{table.name}"), state_of(settings, beside)
    assert new
    if live is None:
        return new.cut, None
    if live.cut != new.cut:
        with news(spark, settings, live.cut) as found:
            advance(spark, settings, beside, "replay", table, found)
    now = read(spark, settings, f"gold.{table.name}", live.version)
    return live.cut, compare(read(spark, settings, beside), now, table.key)


def _swapped(spark: SparkSession, settings: Settings, table: Table, beside: str) -> bool:
    """Not, if the live table is no longer at the same cut, or is changed at this very moment."""
    name = f"gold.{table.name}"
    live, new = state_of(settings, name), state_of(settings, beside)
    assert new
    if live and live.cut != new.cut:
        return False
    commit = _commit(spark, settings, name, table, new.cut, live.version if live else -1)
    try:
        commit.overwrite(read(spark, settings, beside), stats_of(table))
    except DeltaConcurrentModificationException:
        return False
    now = state_of(settings, name)
    return now is not None and now.said.get("before") == commit.number - 1


def _commit(spark: SparkSession, settings: Settings, name: str, table: Table, cut: Cut, before: int) -> Writing:
    commit = writing(spark, settings, name, "gold", table, cut, before=before)
    return Writing(spark, settings, name, commit.metadata, before + 1)


def _named(name: str, tables: Sequence[Table]) -> Table:
    found = next((table for table in tables if table.name == name.removeprefix("gold.")), None)
    if found is None:
        names = ", ".join(table.name for table in tables)
        raise OperatorError(f"There is no gold table {name}.", f"There are: {names}")
    return found
