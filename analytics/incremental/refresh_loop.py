"""Gold kept up with silver, table by table: what new events concern is computed again and merged.

There is no checkpoint and no state but the tables themselves: how far one is, its last commit says (docs/adr/0011).
"""

import threading
import time
from collections.abc import Callable, Generator, Sequence
from contextlib import closing
from dataclasses import dataclass, field

from pyspark import InheritableThread
from pyspark.sql import SparkSession

from analytics.cut import present
from analytics.gold import GOLD
from analytics.gold.definition import Table
from analytics.layers.advancing import Done, advance
from analytics.layers.news import news
from analytics.layers.serving import keep_fresh
from analytics.layers.writing import DeltaConcurrentModificationException, own_session
from shared.settings import Settings

Progress = Callable[[str], None]
POOL = "gold"
REST = 5
"""For every second that a table took. It takes the cores from the ingest, and silver's readers should not wait for
gold's: a batch or two of the ingest are slow, then it has caught up before the next table. What was missed before the
stream began is made up for without rest.
"""


def bring_up_to_date(
    spark: SparkSession,
    settings: Settings,
    progress: Progress = lambda _line: None,
    tables: Sequence[Table] = GOLD,
) -> dict[str, Done]:
    """All gold tables, and Lambda's speed tables where there is a batch layer, to where silver is now."""
    return dict(_one_by_one(spark, settings, progress, tables))


def _one_by_one(
    spark: SparkSession, settings: Settings, progress: Progress, tables: Sequence[Table]
) -> Generator[tuple[str, Done], None, None]:
    """All to the same cut, however long the caller takes between two of them."""
    cut = present(settings)
    if cut is None:
        return
    session = own_session(spark, few_rows=True)
    with news(session, settings, cut) as found:
        for table in tables:
            started = time.monotonic()
            done = advance(session, settings, f"gold.{table.name}", "gold", table, found)
            served = keep_fresh(session, settings, table, found)
            progress(f"gold.{table.name}: {done} ({time.monotonic() - started:.1f} s)")
            if not served:
                progress(f"speed.{table.name}: waits for the next till lake batch")
            yield table.name, done


@dataclass
class GoldStream:
    """Brings gold up to date over and over, in a thread of its own, after the jobs of the ingest."""

    spark: SparkSession
    settings: Settings
    every: float
    progress: Progress
    tables: Sequence[Table] = GOLD
    failure: BaseException | None = None
    passes: int = 0
    _stop: threading.Event = field(default_factory=threading.Event)
    _thread: InheritableThread | None = None

    def start(self) -> "GoldStream":
        self._thread = InheritableThread(target=self._run, daemon=True)
        self._thread.start()
        return self

    def stop(self) -> None:
        """After the table at hand. Raises what has ended it before, if something has."""
        self._stop.set()
        if self._thread:
            self._thread.join()
        if self.failure:
            raise self.failure

    @property
    def active(self) -> bool:
        return self._thread is not None and self._thread.is_alive()

    def _run(self) -> None:
        self.spark.sparkContext.setLocalProperty("spark.scheduler.pool", POOL)
        try:
            while not self._stop.is_set():
                began = time.monotonic()
                self._pass()
                self._stop.wait(max(self.every - (time.monotonic() - began), 0))
        except BaseException as failure:
            self.failure = failure

    def _pass(self) -> None:
        began = time.monotonic()
        try:
            with closing(_one_by_one(self.spark, self.settings, self.progress, self.tables)) as done:
                for _ in done:
                    rest = REST * (time.monotonic() - began) if self.passes else 0
                    if self._stop.wait(rest):
                        return
                    began = time.monotonic()
            self.passes += 1
        except DeltaConcurrentModificationException as other:  # somebody else brought it up to date: look again
            self.progress(f"gold: another writer was faster ({type(other).__name__})")


def start_gold(
    spark: SparkSession,
    settings: Settings,
    every: float = 5,
    progress: Progress = lambda _line: None,
    tables: Sequence[Table] = GOLD,
) -> GoldStream:
    """Keep going: a pass begins when the last is done, that many seconds after it began at least."""
    return GoldStream(spark, settings, every, progress, tables).start()
