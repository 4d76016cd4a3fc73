"""Kappa's replay, for a change of logic: computes a table from the beginning next to the live one, compares, swaps.

The swap is one commit to the live table, with the rows of the new one. Readers see the old rows or the new ones, never
both, and the way back is an older version of the same table. A replay that dies has changed nothing but `replay.*`.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from delta.tables import DeltaTable

from analytics.comparison import Difference, compare
from analytics.incremental.change_feed import open_change_feed
from analytics.incremental.definition import GoldTable
from analytics.incremental.merge import (
    DeltaConcurrentModificationException,
    PendingCommit,
    commit_options,
    own_session,
    stats_of,
)
from analytics.incremental.refresh import recompute, refresh
from analytics.lake import Lake
from analytics.log.commits import ComputedCommit, GoldCommit, ReplayCommit
from analytics.log.cut import Cut
from analytics.log.progress import last_computed, require_cut
from analytics.models import GOLD
from analytics.serving.silver_rebuild import Source, rebuild_silver
from shared.errors import OperatorError

MOST_SWAPS = 5
"""Attempts to swap. While gold is streamed, the live table moves on; the new one catches up, and swaps again."""


@dataclass(frozen=True)
class Replayed:
    name: str
    cut: Cut
    difference: Difference | None
    """Difference from the live table at the same cut; None where there was no live one."""
    swapped: bool


def replay(
    lake: Lake,
    name: str,
    source: Source = "bronze",
    progress: Callable[[str], None] = lambda _line: None,
    swap: bool = True,
    tables: Sequence[GoldTable] = GOLD,
) -> Replayed:
    """Replays a gold table, named without its layer. Without `swap` the new table stays as `replay.*`."""
    table, lake = _find(name, tables), lake.in_session(own_session(lake.spark))
    new = f"replay.{name}"
    _compute(lake, table, new, source, progress)
    for _ in range(MOST_SWAPS):
        cut, difference = _catch_up_and_compare(lake, table, new)
        if difference:
            progress(f"{difference.added} rows added, {difference.gone} gone, {difference.changed} changed")
        if not swap:
            return Replayed(name, cut, difference, swapped=False)
        if _swap(lake, table, new):
            lake.storage.remove(lake.path(new))
            progress(f"gold.{name}: swapped")
            return Replayed(name, cut, difference, swapped=True)
        progress(f"gold.{name} has moved on, catching up")
    raise OperatorError(f"gold.{name} moves on faster than replay.{name}.", "Stop till lake stream meanwhile.")


def undo(lake: Lake, name: str, tables: Sequence[GoldTable] = GOLD) -> Cut:
    """Restores what was live before the last swap. Returns the cut that it has seen."""
    table, lake = _find(name, tables), lake.in_session(own_session(lake.spark))
    log = lake.log(f"gold.{table.name}")
    swap = log.newest(GoldCommit, lambda commit: commit.before is not None or commit.undone is not None)
    if swap is None or swap.commit.before is None:
        raise OperatorError(f"gold.{name} has had no replay that could be undone.")
    before = swap.commit.before
    replaced = next(span.commit for span in log.spans(ComputedCommit) if span.version <= before)
    commit = GoldCommit(replaced.cut, replaced.logic, undone=swap.version)
    with commit_options(lake.spark, userMetadata=commit.metadata()):
        DeltaTable.forPath(lake.spark, lake.path(f"gold.{table.name}")).restoreToVersion(before)
    return replaced.cut


def _compute(lake: Lake, table: GoldTable, new: str, source: Source, progress: Callable[[str], None]) -> None:
    """Computes the new table from the beginning. What a replay that died has left is deleted first."""
    live = last_computed(lake, f"gold.{table.name}")
    cut = live.cut if live else require_cut(lake)
    lake.storage.remove(lake.path(new))
    progress(f"reading {source} from the beginning, up to batch {cut.batch} of the ingest")
    with rebuild_silver(lake, cut, "replay", source) as inputs:
        recompute(lake, new, table, inputs, ReplayCommit(cut, table.version))


def _catch_up_and_compare(lake: Lake, table: GoldTable, new: str) -> tuple[Cut, Difference | None]:
    """Brings the new table to the cut that the live one has seen by now, and compares the two."""
    live, replayed = lake.log(f"gold.{table.name}").newest(ComputedCommit), last_computed(lake, new)
    assert replayed
    if live is None:
        return replayed.cut, None
    cut = live.commit.cut
    if cut != replayed.cut:
        with open_change_feed(lake, cut) as feed:
            refresh(lake, new, ReplayCommit, table, feed)
    now = lake.read(f"gold.{table.name}", live.latest)
    return cut, compare(lake.read(new), now, table.key)


def _swap(lake: Lake, table: GoldTable, new: str) -> bool:
    """Commits the new rows to the live table. Returns False if that has moved on, or is changed at this moment."""
    name = f"gold.{table.name}"
    live, replayed = lake.log(name).newest(ComputedCommit), last_computed(lake, new)
    assert replayed
    if live and live.commit.cut != replayed.cut:
        return False
    before = live.latest if live else -1
    pending = PendingCommit(lake, name, GoldCommit(replayed.cut, table.version, before=before), before + 1)
    try:
        pending.overwrite(lake.read(new), stats_of(table))
    except DeltaConcurrentModificationException:
        return False
    now = last_computed(lake, name)
    return isinstance(now, GoldCommit) and now.before == before


def _find(name: str, tables: Sequence[GoldTable]) -> GoldTable:
    found = next((table for table in tables if table.name == name), None)
    if found is None:
        names = ", ".join(table.name for table in tables)
        raise OperatorError(f"There is no gold table {name}.", f"There are: {names}")
    return found
