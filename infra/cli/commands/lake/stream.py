"""`till lake stream`: runs ingest, gold and alerts side by side until it is stopped."""

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict
from time import monotonic
from types import FrameType
from typing import TYPE_CHECKING

import click
import orjson

from infra.cli.commands.lake.spark import alone, open_lake, require_kafka
from infra.cli.render.console import json_option, out
from infra.cli.render.program import program
from infra.cli.render.progress import Display, progress
from infra.settings import Settings

if TYPE_CHECKING:
    from analytics.pipeline import LakeStream, Pulse


@click.command()
@click.option("--seconds", type=click.FloatRange(1), help="Stop after this many seconds.")
@json_option
def stream(seconds: float | None, as_json: bool) -> None:
    """Keep all tables up to date with Kafka, until Ctrl-C.

    Bronze, silver, gold and fraud alerts run side by side. Alerts do not wait for tables: they are judged straight from
    Kafka. Ctrl-C finishes the current batch first; a second Ctrl-C does not wait for it, which is also safe.

    \b
    Examples:
      till lake stream
      till lake stream --seconds 60 --json      a line of JSON for each change
    """
    settings = Settings.load()
    require_kafka(settings)
    began, before = monotonic(), _ingested_events(settings)
    with (
        alone(settings),
        progress(quiet=as_json) as shown,
        open_lake(settings, shown.note) as lake,
        stop_signal() as stop,
    ):
        from analytics.pipeline import LakeStream

        work = LakeStream.start(lake)
        shown.note("stream", "ready")
        _follow(work, stop, monotonic() + seconds if seconds else None, None if as_json else shown)
        shown.note("stream", "finishing the current batch")
        work.stop()
        shown.note("stream", "done")
    events = _ingested_events(settings) - before
    if not as_json:
        out.print(
            f"New events from Kafka: {events:,}, in {monotonic() - began:.0f} s. To continue: {program()} lake stream"
        )


def _follow(work: "LakeStream", stop: threading.Event, until: float | None, shown: Display | None) -> None:
    """Shows how the stream is doing until it is to stop, or prints a line of JSON for each change."""
    last: Pulse | None = None
    while not stop.wait(0.5) and (until is None or monotonic() < until):
        work.check()
        pulse = work.pulse()
        if pulse is None or pulse == last:
            continue
        last = pulse
        if shown:
            shown.update("stream", f"{pulse} · Ctrl-C stops")
        else:
            click.echo(orjson.dumps(asdict(pulse)))


def _ingested_events(settings: Settings) -> int:
    from analytics.lake import LakeFiles
    from analytics.log.progress import ingested_events

    return ingested_events(LakeFiles(settings))


@contextmanager
def stop_signal() -> Iterator[threading.Event]:
    """Yields an event that Ctrl-C or SIGTERM sets. A second Ctrl-C interrupts as usual."""
    stop = threading.Event()

    def handle(number: int, _frame: FrameType | None) -> None:
        stop.set()
        signal.signal(number, signal.default_int_handler)

    before = {number: signal.signal(number, handle) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield stop
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
