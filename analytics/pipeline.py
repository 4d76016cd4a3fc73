"""The order in which the lake is brought up to date: fraud alerts, then the ingest, then gold. Once, or continuously.

Alerts come first: what they publish is in Kafka when the ingest reads it, and comes into bronze in the same run.
"""

import json
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from time import monotonic
from typing import Any

from pyspark.sql.streaming.query import StreamingQuery

from analytics.fraud.stream import AlertStream
from analytics.incremental.refresh import Outcome
from analytics.ingest.recovery import accept_topics
from analytics.ingest.stream import ingest_available, start_ingest, stop, wait
from analytics.lake import Lake
from analytics.log.commits import IngestCommit
from analytics.log.offsets import total
from analytics.log.progress import ingested_events
from analytics.query.delays import measure_delays
from analytics.serving.streaming_layer import RefreshLoop, refresh_gold, start_refresh_loop
from analytics.tables import update_comments

Watch = Callable[[str, str], None]
"""Called with a step and its state, to show progress."""
ALERTS, INGEST = "alerts", "bronze and silver"
BATCH_SECONDS = 30.0
"""Longest wait for the end of a batch of alerts. An interrupted one is repeated: nothing is lost or sent twice."""


@dataclass(frozen=True)
class Updated:
    events: int
    """New events from Kafka."""
    gold: dict[str, Outcome]
    """Outcome for each gold table."""


def update(lake: Lake, watch: Watch, progress: Callable[[str], None], accepted: Sequence[str] = ()) -> Updated:
    """Brings all tables up to the current end of Kafka. Topics in `accepted` are read again from their beginning."""
    update_comments(lake)
    if accepted:
        accept_topics(lake, list(accepted))
    before = ingested_events(lake)
    watch(ALERTS, "judging payments")
    AlertStream(lake).judge_available()
    watch(ALERTS, "done")
    watch(INGEST, "reading Kafka")
    with _counting(lake, watch):
        ingest_available(lake)
    events = ingested_events(lake) - before
    watch(INGEST, f"done: {events:,} new events")
    return Updated(events, refresh_gold(lake, progress))


@contextmanager
def _counting(lake: Lake, watch: Watch) -> Iterator[None]:
    """Reports how many events the ingest has read so far."""
    over = threading.Event()

    def count() -> None:
        read: dict[int, int] = {}
        while not over.wait(1):
            for query in lake.spark.streams.active:
                if query.name == IngestCommit.QUERY:
                    read |= {progress["batchId"]: progress["numInputRows"] for progress in query.recentProgress}
            if read:
                watch(INGEST, f"reading Kafka: {sum(read.values()):,} events")

    thread = threading.Thread(target=count, daemon=True)
    thread.start()
    try:
        yield
    finally:
        over.set()
        thread.join()


@dataclass(frozen=True)
class Pulse:
    """Figures of a running stream."""

    batch: int
    events_per_second: float
    behind: int
    """Events in Kafka that were not in the batch."""
    fresh: float | None
    """Seconds from the newest event of the last batch to the moment at which silver had it."""
    gold_passes: int

    def __str__(self) -> str:
        fresh = f" · {self.fresh:.1f} s from Kafka to silver" if self.fresh is not None else ""
        rate = f"{self.events_per_second:,.0f} events/s · {self.behind:,} behind"
        return f"batch {self.batch} · {rate}{fresh} · gold {self.gold_passes} times up to date"


@dataclass
class LakeStream:
    """Alerts, ingest and gold running side by side. None of them continues without the others."""

    lake: Lake
    ingest: StreamingQuery
    gold: RefreshLoop
    alerts: "BackgroundAlerts"

    @classmethod
    def start(cls, lake: Lake) -> "LakeStream":
        """Starts the ingest first: it may refuse to start, and then nothing else is running."""
        update_comments(lake)
        return cls(lake, start_ingest(lake), start_refresh_loop(lake), BackgroundAlerts(AlertStream(lake)))

    def check(self) -> None:
        """Raises the failure that has ended one of the three."""
        if not self.ingest.isActive:
            wait(self.ingest)
        if failure := self.gold.failure or self.alerts.failure:
            raise failure

    def stop(self) -> None:
        """Stops all three, each after its current batch."""
        self.alerts.stop()
        stop(self.ingest)
        self.gold.stop()

    def pulse(self) -> Pulse | None:
        """Returns the figures of the last batch; None before the first."""
        last = self.ingest.lastProgress
        if not last:
            return None
        progress: dict[str, Any] = json.loads(last.json)
        [source] = progress["sources"]
        behind = total(source["latestOffset"] or {}) - total(source["endOffset"] or {})
        newest = measure_delays(self.lake, 3)
        return Pulse(
            progress["batchId"],
            progress.get("processedRowsPerSecond", 0.0),
            max(0, behind),
            newest[-1].newest if newest else None,
            self.gold.passes,
        )


class BackgroundAlerts:
    """The stream of alerts in a thread of its own: it restarts itself when it meets a new schema."""

    def __init__(self, alerts: AlertStream) -> None:
        self.failure: BaseException | None = None
        self._alerts = alerts
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def stop(self) -> None:
        """Stops the stream. Repeats the request until the thread has ended: it may be about to restart."""
        deadline = monotonic() + BATCH_SECONDS
        while self._thread.is_alive() and monotonic() < deadline:
            self._alerts.stop()
            self._thread.join(0.5)

    def _run(self) -> None:
        try:
            self._alerts.judge_until_stopped()
        except BaseException as failure:
            self.failure = failure
