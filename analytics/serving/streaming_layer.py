"""Kappa's stream: keeps gold up to date with silver, table by table, once or until stopped.

Lambda's speed tables are refreshed with it, from the same new events. The only state is in the tables themselves: the
last commit of each says how far it is (docs/adr/0011).
"""

import threading
import time
from collections.abc import Callable, Generator, Sequence
from contextlib import closing
from dataclasses import dataclass, field

from pyspark import InheritableThread

from analytics.incremental.change_feed import open_change_feed
from analytics.incremental.definition import GoldTable
from analytics.incremental.merge import DeltaConcurrentModificationException, own_session
from analytics.incremental.refresh import Outcome, refresh
from analytics.lake import Lake
from analytics.log.commits import GoldCommit
from analytics.log.progress import current_cut
from analytics.models import GOLD
from analytics.runtime.session import scheduler_pool
from analytics.serving.speed_layer import refresh_speed

Progress = Callable[[str], None]
POOL = "gold"
REST = 5
"""Seconds of rest for every second that a table took, once gold has caught up.

A refresh takes cores from the ingest, and readers of silver should not wait because of gold. With the rest, a batch or
two of the ingest are slow, and it has caught up before the next table. The first pass, which makes up for the time
before the start, does not rest.
"""


def refresh_gold(
    lake: Lake,
    progress: Progress = lambda _line: None,
    tables: Sequence[GoldTable] = GOLD,
) -> dict[str, Outcome]:
    """Brings all gold tables, and Lambda's speed tables where there is a batch layer, to where silver is now."""
    return dict(_refresh_each(lake, progress, tables))


def _refresh_each(
    lake: Lake, progress: Progress, tables: Sequence[GoldTable]
) -> Generator[tuple[str, Outcome], None, None]:
    """Refreshes all tables to the same cut, however long the caller takes between two of them."""
    cut = current_cut(lake)
    if cut is None:
        return
    lake = lake.in_session(own_session(lake.spark, few_rows=True))
    with open_change_feed(lake, cut) as feed:
        for table in sorted(tables, key=lambda table: table.name not in table.scope.index):
            started = time.monotonic()
            outcome = refresh(lake, f"gold.{table.name}", GoldCommit, table, feed)
            speed_is_fresh = refresh_speed(lake, table, feed)
            progress(f"gold.{table.name}: {outcome} ({time.monotonic() - started:.1f} s)")
            if not speed_is_fresh:
                progress(f"speed.{table.name}: waits for the next till lake batch")
            yield table.name, outcome


@dataclass
class RefreshLoop:
    """Refreshes gold over and over, in a thread of its own, in a scheduler pool behind the ingest."""

    lake: Lake
    every: float
    progress: Progress
    tables: Sequence[GoldTable] = GOLD
    failure: BaseException | None = None
    passes: int = 0
    _stop: threading.Event = field(default_factory=threading.Event)
    _thread: InheritableThread | None = None

    def start(self) -> "RefreshLoop":
        self._thread = InheritableThread(target=self._run, daemon=True)
        self._thread.start()
        return self

    def stop(self) -> None:
        """Stops after the current table. Raises what has ended the loop before, if something has."""
        self._stop.set()
        if self._thread:
            self._thread.join()
        if self.failure:
            raise self.failure

    @property
    def active(self) -> bool:
        return self._thread is not None and self._thread.is_alive()

    def _run(self) -> None:
        try:
            with scheduler_pool(self.lake.spark, POOL):
                while not self._stop.is_set():
                    began = time.monotonic()
                    self._pass()
                    self._stop.wait(max(self.every - (time.monotonic() - began), 0))
        except BaseException as failure:
            self.failure = failure

    def _pass(self) -> None:
        began = time.monotonic()
        try:
            with closing(_refresh_each(self.lake, self.progress, self.tables)) as done:
                for _ in done:
                    rest = REST * (time.monotonic() - began) if self.passes else 0
                    if self._stop.wait(rest):
                        return
                    began = time.monotonic()
            self.passes += 1
        except DeltaConcurrentModificationException as other:  # another process refreshed the table: look again
            self.progress(f"gold: another writer was faster ({type(other).__name__})")


def start_refresh_loop(
    lake: Lake,
    every: float = 5,
    progress: Progress = lambda _line: None,
    tables: Sequence[GoldTable] = GOLD,
) -> RefreshLoop:
    """Starts the loop: a pass begins when the last one is done, and at least `every` seconds after it began."""
    return RefreshLoop(lake, every, progress, tables).start()
