"""Measures the lake next to the barest Spark stream Kafka -> Delta: throughput, freshness, growth, memory.

The full size takes half an hour. A short one: python -m tests.bench.lake 20000 20
"""

import asyncio
import json
import statistics
import sys
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from itertools import accumulate, pairwise
from pathlib import Path
from tempfile import mkdtemp
from typing import Any

import psutil
import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql import SparkSession
from pyspark.sql.streaming.query import StreamingQuery

from analytics.catalog import SILVER_TABLES
from analytics.ingest.stream import ingest_available, start_ingest, stop
from analytics.lake import Lake, LakeFiles
from analytics.log.commits import IngestCommit
from analytics.serving.streaming_layer import refresh_gold, start_refresh_loop
from infra.cli.render.console import err
from infra.lake.spark import open_spark
from infra.settings import Settings
from tests.bench.figures import Figure
from tests.bench.kit.lake_bare import bare
from tests.bench.kit.lake_load import fill, selling
from tests.roll import Press

MB = 1_000_000
REFERENCE_SECONDS = 120
PLOT = "lake-rebuild.svg"


@dataclass(frozen=True)
class Size:
    small: int = 100_000
    large: int = 5_000_000
    seconds: Mapping[int, int] = field(default_factory=lambda: {200: 120, 2_000: 300})
    """Seconds of sales by rate in events per second, after a minute of warming up."""


async def run(settings: Settings) -> list[Figure]:
    return await asyncio.to_thread(measure, settings, Size())


def measure(settings: Settings, size: Size) -> list[Figure]:
    spark = open_spark(settings)
    try:
        with _memory(spark) as peak:
            fill(Press(settings), size.small)
            throughput = list(_throughput(spark, settings))
            freshness = [
                it for rate, seconds in size.seconds.items() for it in _freshness(spark, settings, rate, seconds)
            ]
            growth = list(_growth(spark, settings, size))
        limit = Figure("memory of the driver at its highest (limit: 3 GB)", peak() / MB, 3_000, "MB", at_most=1)
        return [*throughput, *freshness, *growth, limit]
    finally:
        spark.stop()


def _throughput(spark: SparkSession, settings: Settings) -> Iterator[Figure]:
    """Measures three rounds, of which the first only warms the JVM up."""
    rounds = []
    for _ in range(3):
        folder = mkdtemp(dir=settings.home)
        query = bare(spark, settings, folder, "earliest", availableNow=True)
        query.awaitTermination()
        lake = _new_lake(spark, settings)
        ingest_available(lake)
        bronze, silver = _rates(lake)
        rounds.append((_rate(query), bronze, silver))
    reference, bronze, silver = sorted(rounds[1:], key=lambda one: one[2] / one[0])[0]
    yield Figure("Kafka to bronze, barest stream Kafka -> Delta", bronze, reference, "events/s", at_least=0.8)
    yield Figure("bronze to silver, barest stream Kafka -> Delta", silver, reference, "events/s", at_least=0.5)


def _rate(query: StreamingQuery) -> float:
    progress = [one for one in query.recentProgress if one["numInputRows"]]
    rows = sum(one["numInputRows"] for one in progress)
    return float(1000 * rows / sum(one["durationMs"]["triggerExecution"] for one in progress))


def _rates(lake: LakeFiles) -> tuple[float, float]:
    """Computes rates from the log: when a batch was planned, when bronze had it, when the last silver table had it."""
    planned = _planned(lake)
    bronze = {span.commit.batch: span.versions[-1] for span in lake.log("bronze.events").spans(IngestCommit)}
    silver: dict[int, int] = {}
    for table in SILVER_TABLES:
        for span in lake.log(f"silver.{table}").spans(IngestCommit):
            batch = span.commit.batch
            silver[batch] = max(silver.get(batch, 0), span.timestamp)
    rows = sum(version.rows or 0 for version in bronze.values())
    to_bronze = sum(bronze[n].timestamp - planned[n] for n in bronze)
    to_silver = sum(silver[n] - bronze[n].timestamp for n in bronze)
    return 1000 * rows / to_bronze, 1000 * rows / to_silver


def _planned(lake: LakeFiles) -> dict[int, float]:
    """Returns the Unix milliseconds at which each batch was planned."""
    files = Path(lake.settings.lake).glob("_checkpoints/ingest/*/offsets/[0-9]*")
    return {int(file.name): file.stat().st_mtime * 1000 for file in files}


def _freshness(spark: SparkSession, settings: Settings, rate: int, seconds: int) -> Iterator[Figure]:
    """Measures the time from Kafka to visible rows: the barest stream alone, and silver while gold is refreshed."""
    warm = min(60, seconds)
    folder = mkdtemp(dir=settings.home)
    with selling(settings, rate):
        query = bare(spark, settings, folder, "latest", processingTime="0 seconds")
        time.sleep(warm + min(seconds, REFERENCE_SECONDS))
        stop(query)
    reference = _delays(f"{folder}/table", "timestamp", warm)
    lake = _new_lake(spark, settings)
    ingest_available(lake)
    refresh_gold(lake)
    with selling(settings, rate):
        ingest, gold = start_ingest(lake), start_refresh_loop(lake)
        began = time.time()
        time.sleep(warm + seconds)
        lag = _lag(ingest)
        stop(ingest)
        gold.stop()
    tables = (lake.path(f"silver.{table}") for table in SILVER_TABLES)
    ours = [delay for table in tables for delay in _delays(table, "kafka_time", warm, began)]
    how = f"Kafka to silver with gold running at {rate:,} events/s, barest stream"
    yield Figure(f"{how}, p50", statistics.median(ours), statistics.median(reference), "s", at_most=2)
    yield Figure(f"{how}, p95", _p95(ours), _p95(reference), "s", note="")
    yield Figure(f"events not yet read after {seconds} s at {rate:,} events/s (limit: 30 s of them)", lag, 30 * rate,
                 "events", at_most=1)  # fmt: skip


def _delays(path: str, column: str, warm: float, began: float = 0) -> list[float]:
    """Returns for every event the seconds from its timestamp in Kafka to its commit."""
    seen: list[tuple[float, float]] = []
    for log in sorted(Path(path).glob("_delta_log/*.json")):
        actions = [json.loads(line) for line in log.read_text().splitlines()]
        [committed] = [it["commitInfo"]["timestamp"] / 1000 for it in actions if "commitInfo" in it]
        for added in (it["add"]["path"] for it in actions if "add" in it and it["add"]["dataChange"]):
            times = pq.read_table(Path(path) / added, columns=[column])[column].cast(pa.timestamp("us")).cast("int64")
            seen += [(time / 1_000_000, committed) for time in times.to_pylist()]
    start = max(began, min(commit for _, commit in seen)) + warm
    return [commit - kafka for kafka, commit in seen if kafka > start]


def _lag(query: StreamingQuery) -> int:
    progress = query.lastProgress
    assert progress
    [source] = progress["sources"]
    return int(source["metrics"]["maxOffsetsBehindLatest"]) if source["metrics"] else 0


def _growth(spark: SparkSession, settings: Settings, size: Size) -> Iterator[Figure]:
    """Rebuilds a lake from Kafka, batch by batch."""
    press = Press(settings)
    fill(press, size.large - size.small)
    lake = _new_lake(spark, settings)
    began = time.monotonic()
    ingest_available(lake)
    took = time.monotonic() - began
    steps = _steps(lake)
    rates = [1000 * rows / duration for rows, duration in steps]
    tenth = max(1, len(rates) // 10)
    first, last = statistics.median(rates[1 : 1 + 2 * tenth]), statistics.median(rates[-2 * tenth :])
    _plot(steps, Settings.load().home / PLOT)  # not into the home of the bench, which goes with it
    events = sum(rows for rows, _ in steps)
    yield Figure(f"rebuilt from Kafka: {events:,} events", events / took, first, "events/s", note=f"{took:,.0f} s")
    yield Figure("rate of the last batches of it, of the first", last, first, "events/s", at_least=0.8)
    began = time.monotonic()
    refresh_gold(lake)
    gold = time.monotonic() - began
    yield Figure("all of gold from them, beside that", events / gold, events / took, "events/s", note=f"{gold:,.0f} s")


def _steps(lake: LakeFiles) -> list[tuple[int, float]]:
    """Returns the events of each batch, and the milliseconds from its plan to the next one's."""
    planned = sorted(_planned(lake).items())
    spans = lake.log("bronze.events").spans(IngestCommit)
    rows = {span.commit.batch: span.versions[-1].rows or 0 for span in spans}
    return [(rows[n], after - at) for (n, at), (_, after) in pairwise(planned)]


def _plot(steps: list[tuple[int, float]], file: Path) -> None:
    import matplotlib

    matplotlib.use("agg")
    from matplotlib import pyplot

    pyplot.plot(list(accumulate(ms / 1000 for _, ms in steps)), list(accumulate(rows for rows, _ in steps)))
    pyplot.xlabel("seconds")
    pyplot.ylabel("events in the lake")
    pyplot.title("A lake rebuilt from Kafka")
    file.parent.mkdir(parents=True, exist_ok=True)
    pyplot.savefig(file)
    err.print(f"Plot of the rebuild: {file}", style="dim")


def main() -> None:
    """Runs `python -m tests.bench.lake EVENTS SECONDS` on a stack of its own."""
    from infra.local.stack import up
    from infra.local.throwaway import settings_of, throwaway
    from tests.bench.figures import show

    events, seconds = map(int, sys.argv[1:])
    with throwaway() as environment:
        settings = asyncio.run(up(settings_of(environment), servers_only=True)).settings
        show(measure(settings, Size(events, 3 * events, {200: seconds, 2_000: seconds})), as_json=False)


def _new_lake(spark: SparkSession, settings: Settings) -> Lake:
    return Lake(spark, settings.model_copy(update={"lake": mkdtemp(dir=settings.home)}))


@contextmanager
def _memory(spark: SparkSession) -> Iterator[Callable[[], int]]:
    """Samples the memory of the JVM every second and yields a function that returns the maximum."""
    gateway: Any = spark.sparkContext._jvm
    jvm = psutil.Process(gateway.java.lang.ProcessHandle.current().pid())
    peak, over = 0, threading.Event()

    def watch() -> None:
        nonlocal peak
        while not over.wait(1):
            peak = max(peak, jvm.memory_info().rss)

    thread = threading.Thread(target=watch)
    thread.start()
    try:
        yield lambda: peak
    finally:
        over.set()
        thread.join()


def _p95(delays: list[float]) -> float:
    return statistics.quantiles(delays, n=20)[-1]


if __name__ == "__main__":
    main()
