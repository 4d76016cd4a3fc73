"""`till lake stream`: ingest, gold and alerts side by side, until somebody says stop."""

import json
import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from time import monotonic
from types import FrameType
from typing import TYPE_CHECKING, Any

import click
import orjson
from rich.live import Live
from rich.text import Text

from infra.cli.console import as_json as json_option
from infra.cli.console import err, out
from infra.cli.lake_spark import alone
from infra.cli.lake_work import ingested_events, opened, require_kafka
from infra.cli.progress import progress
from shared.settings import Settings

if TYPE_CHECKING:
    from pyspark.sql import SparkSession
    from pyspark.sql.streaming.query import StreamingQuery

    from analytics.layers.speed import GoldStream

LINE_SECONDS = 10.0
"""Between two lines where there is no terminal."""
BATCH_SECONDS = 30.0
"""Longest wait for the end of a batch of alerts. One that is cut off is taken again: nothing is lost or twice."""


@dataclass(frozen=True)
class Pulse:
    batch: int
    events_per_second: float
    behind: int
    """Events in Kafka that were not in the batch."""
    fresh: float | None
    """Seconds from Kafka to silver, for the newest event of the last batch."""
    gold_passes: int

    def __str__(self) -> str:
        fresh = f" · {self.fresh:.1f} s from Kafka to silver" if self.fresh is not None else ""
        rate = f"{self.events_per_second:,.0f} events/s · {self.behind:,} behind"
        return f"batch {self.batch} · {rate}{fresh} · gold {self.gold_passes} times up to date"


@click.command()
@click.option("--seconds", type=click.FloatRange(1), help="Stop by itself after that long.")
@json_option
def stream(seconds: float | None, as_json: bool) -> None:
    """Keep everything up to date with Kafka until Ctrl-C: bronze and silver, gold, and fraud alerts.

    Alerts do not wait for tables: they are judged straight from Kafka. On Ctrl-C the batch at hand is finished first;
    a second Ctrl-C does not wait for it, which is safe, too.

    \b
    Examples:
      till lake stream
      till lake stream --seconds 60 --json      a line of JSON for each change
    """
    settings = Settings.load()
    require_kafka(settings)
    began, before = monotonic(), ingested_events(settings)
    with alone(settings), progress(quiet=as_json) as watch, opened(settings, watch) as spark, told_to_stop() as stop:
        work = Work.begun(spark, settings)
        watch("stream", "ready")
        _follow(work, stop, monotonic() + seconds if seconds else None, as_json)
        watch("stream", "finishing the batch at hand")
        work.end()
        watch("stream", "done")
    events = ingested_events(settings) - before
    if not as_json:
        out.print(f"New events from Kafka: {events:,}, in {monotonic() - began:.0f} s. To go on: till lake stream")


@dataclass
class Work:
    settings: Settings
    ingest: "StreamingQuery"
    gold: "GoldStream"
    alerts: "Background"

    @classmethod
    def begun(cls, spark: "SparkSession", settings: Settings) -> "Work":
        from analytics.fraud.stream import AlertStream
        from analytics.ingest.stream import start_ingest
        from analytics.layers.speed import start_gold

        alerts = Background(AlertStream(spark, settings))
        return cls(settings, start_ingest(spark, settings), start_gold(spark, settings), alerts)

    def check(self) -> None:
        """Raises what has ended one of them: none goes on without the others."""
        from analytics.ingest.stream import wait

        if not self.ingest.isActive:
            wait(self.ingest)
        if failure := self.gold.failure or self.alerts.failure:
            raise failure

    def end(self) -> None:
        from analytics.ingest.stream import stop

        self.alerts.stop()
        stop(self.ingest)
        self.gold.stop()

    def pulse(self) -> Pulse | None:
        from analytics.reading.delays import delays

        last = _progress(self.ingest)
        if not last:
            return None
        [source] = last["sources"]
        behind = _total(source["latestOffset"]) - _total(source["endOffset"])
        newest = delays(self.settings, 3)
        fresh = newest[-1].newest if newest else None
        rate = last.get("processedRowsPerSecond", 0.0)
        return Pulse(last["batchId"], rate, max(0, behind), fresh, self.gold.passes)


class Background:
    """The alerts, in a thread of their own: their stream starts itself anew when it meets a new schema."""

    def __init__(self, alerts: Any) -> None:
        self.failure: BaseException | None = None
        self._alerts = alerts
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def stop(self) -> None:
        """Again until it has heard it: it may be about to start."""
        deadline = monotonic() + BATCH_SECONDS
        while self._thread.is_alive() and monotonic() < deadline:
            self._alerts.stop()
            self._thread.join(0.5)

    def _run(self) -> None:
        try:
            self._alerts.keep_going()
        except BaseException as failure:
            self.failure = failure


def _follow(work: Work, stop: threading.Event, until: float | None, as_json: bool) -> None:
    """Until told to stop; on a terminal one line that is kept fresh."""
    said: Pulse | None = None
    told = 0.0
    terminal = err.is_terminal and not as_json
    with Live(console=err, transient=True, auto_refresh=False) if terminal else _nothing() as live:
        while not stop.wait(0.5) and (until is None or monotonic() < until):
            work.check()
            pulse = work.pulse()
            if pulse is None or pulse == said:
                continue
            if live:
                live.update(Text(f"{pulse} · Ctrl-C stops"), refresh=True)
            elif as_json:
                click.echo(orjson.dumps(asdict(pulse)))
            elif monotonic() - told >= LINE_SECONDS:
                told = monotonic()
                err.print(Text(str(pulse)))
            else:
                continue
            said = pulse


@contextmanager
def _nothing() -> Iterator[None]:
    yield None


@contextmanager
def told_to_stop() -> Iterator[threading.Event]:
    """By Ctrl-C or SIGTERM. The second one is taken as it comes."""
    stop = threading.Event()

    def heard(number: int, _frame: FrameType | None) -> None:
        stop.set()
        signal.signal(number, signal.default_int_handler)

    before = {number: signal.signal(number, heard) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield stop
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def _progress(query: "StreamingQuery") -> dict[str, Any]:
    """Of the last batch, as Spark tells it; empty before the first."""
    last = query.lastProgress
    return dict(json.loads(last.json)) if last else {}


def _total(offsets: dict[str, dict[str, int]] | None) -> int:
    return sum(offset for partitions in (offsets or {}).values() for offset in partitions.values())
