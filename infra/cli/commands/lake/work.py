"""`till lake run`, `batch`, `replay` and `verify`: work that Spark does and ends with."""

import asyncio
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict
from time import monotonic
from typing import TYPE_CHECKING, Any

import click
from rich.text import Text

from infra.cli.cells import print_rows
from infra.cli.console import as_json as json_option
from infra.cli.console import out, print_json
from infra.cli.lake_spark import alone, at_work
from infra.cli.progress import progress
from infra.cli.refusals import BadInput
from shared.errors import OperatorError
from shared.settings import Settings

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from analytics.layers.comparing import Difference

Watch = Callable[[str, str], None]
INGEST = "bronze and silver"


@click.command()
@click.option("--accept", multiple=True, metavar="TOPIC", help="Go on with this topic as it is now, from its start.")
@json_option
def run(accept: tuple[str, ...], as_json: bool) -> None:
    """Bring everything up to date with Kafka, and stop: fraud alerts, bronze, silver, gold.

    Run it as often as you like. It goes on where the last one got to, also where that one was killed.

    \b
    Examples:
      till lake run
      till lake run --json
      till lake run --accept cart.events      it was deleted, and filled again from the store
    """
    done = bring_lake_up_to_date(Settings.load(), quiet=as_json, accepted=accept)
    if as_json:
        print_json(done)
        return
    out.print(f"New events from Kafka: {done['events']:,}. The lake is up to date, after {done['seconds']:.0f} s.")
    for name in (name for name, state in done["gold"].items() if state == "waits for a replay"):
        out.print(Text(f"gold.{name} was made by an older logic. To make it anew: till lake replay {name}", "yellow"))


def bring_lake_up_to_date(settings: Settings, quiet: bool, accepted: Sequence[str] = ()) -> dict[str, Any]:
    """How many events are new, and what became of each gold table."""
    require_kafka(settings)
    began = monotonic()
    with alone(settings), progress(quiet) as watch, opened(settings, watch) as spark:
        from analytics.fraud.stream import AlertStream
        from analytics.ingest.recovery import accept
        from analytics.ingest.stream import ingest_available
        from analytics.layers.speed import bring_up_to_date

        if accepted:
            accept(spark, settings, list(accepted))
        before = ingested_events(settings)
        # Before the ingest: what it sends is in Kafka then, and comes into bronze in the same run.
        watch("alerts", "judging payments")
        AlertStream(spark, settings).bring_up_to_date()
        watch("alerts", "done")
        watch(INGEST, "reading Kafka")
        with followed(spark, watch):
            ingest_available(spark, settings)
        events = ingested_events(settings) - before
        watch(INGEST, f"done: {events:,} new events")
        gold = bring_up_to_date(spark, settings, lines(watch))
    return {"events": events, "gold": gold, "seconds": round(monotonic() - began, 1)}


@click.command()
@json_option
def batch(as_json: bool) -> None:
    """Lambda's batch layer: compute every gold table from bronze, from the beginning, into batch.*.

    From then on `till lake run` and `stream` keep speed.* beside it, with what has changed since.

    \b
    Example:
      till lake batch
    """
    settings = Settings.load()
    require_lake(settings)
    with progress(quiet=as_json) as watch, opened(settings, watch) as spark:
        from analytics.layers.batch import recompute

        cut = recompute(spark, settings, lines(watch))
    if as_json:
        print_json(asdict(cut))
    else:
        out.print(f"batch.* is computed, up to batch {cut.batch} of the ingest: {_events(cut.offsets):,} events.")


@click.command()
@click.argument("name", metavar="TABLE")
@click.option("--from", "source", type=click.Choice(["bronze", "kafka"]), default="bronze", show_default=True)
@click.option("--swap/--no-swap", default=True, show_default=True, help="Put it in the place of the live one.")
@click.option("--undo", is_flag=True, help="Back to what was live before the last replay.")
@json_option
def replay(name: str, source: str, swap: bool, undo: bool, as_json: bool) -> None:
    """Kappa: compute a gold table anew from the beginning, compare it with the live one, and swap them.

    For a change of logic. The live table is read and written on meanwhile; the swap is one commit of it. With
    --no-swap the new one stays beside it, to be looked at: till sql "SELECT * FROM replay.TABLE".

    \b
    Examples:
      till lake replay funnel
      till lake replay orders --from kafka --no-swap
      till lake replay funnel --undo
    """
    name = name.removeprefix("gold.")
    _require_table(name)
    settings = Settings.load()
    require_lake(settings)
    if source == "kafka":
        require_kafka(settings)
    with progress(quiet=as_json) as watch, opened(settings, watch) as spark:
        from analytics.layers import kappa

        if undo:
            cut = kappa.undo(spark, settings, name)
        else:
            replayed = kappa.replay(spark, settings, name, source, lines(watch, f"gold.{name}"), swap)  # type: ignore[arg-type]
    if undo:
        shown = asdict(cut)
        told = f"gold.{name} is what it was before the last replay, up to batch {cut.batch}. Then: till lake run"
    else:
        shown = asdict(replayed)
        told = _compared(name, replayed.difference, replayed.swapped)
    if as_json:
        print_json(shown)
        return
    out.print(told)
    if not undo and replayed.difference:
        show_difference(replayed.difference, "replayed", "live")


def _require_table(name: str) -> None:
    """Asked before Spark is started for it."""
    from analytics.gold import GOLD

    names = [table.name for table in GOLD]
    if name not in names:
        raise BadInput(f"There is no gold table {name}. There are: {', '.join(names)}.")


@click.command()
@json_option
@click.pass_context
def verify(context: click.Context, as_json: bool) -> None:
    """Compare every streamed gold table with a batch from bronze, row for row, both ways.

    Also what Lambda serves, where there is a batch layer. Exit code 1 when a row differs; the rows are shown.

    \b
    Example:
      till lake verify
    """
    settings = Settings.load()
    require_lake(settings)
    with progress(quiet=as_json) as watch, opened(settings, watch) as spark:
        from analytics.layers.equality import verify as compare_all

        found = compare_all(spark, settings, lines(watch))
    if not found.verdicts:
        raise OperatorError(f"There is no gold yet in {settings.lake}: nothing to compare.", "till lake run")
    if as_json:
        print_json({"equal": found.equal, "rule": found.rule, "tables": [asdict(it) for it in found.verdicts]})
    else:
        for verdict in found.verdicts:
            mark = Text("✓ ", "green") if verdict.equal else Text("✗ ", "bold red")
            rows = f"{verdict.difference.rows:,} rows" if verdict.equal else _counted(verdict.difference)
            out.print(mark.append(f"{verdict.name}  {rows}, batch {verdict.cut.batch}", "default"))
            show_difference(verdict.difference, "streamed", "batch")
        out.print(Text(found.rule, "dim"))
    context.exit(0 if found.equal else 1)


def show_difference(difference: "Difference", this: str, other: str) -> None:
    if not difference.shown:
        return
    sides = {"this": this, "other": other}
    columns = list(difference.shown[0])
    rows = [[sides.get(str(row[c]), row[c]) if c == "side" else row[c] for c in columns] for row in difference.shown]
    print_rows(columns, ["VARCHAR"] * len(columns), rows)


@contextmanager
def opened(settings: Settings, watch: Watch) -> Iterator["SparkSession"]:
    watch("Spark", "starting")
    with at_work(settings) as spark:
        watch("Spark", "ready")
        yield spark


@contextmanager
def followed(spark: "SparkSession", watch: Watch) -> Iterator[None]:
    """While the ingest runs, how many events it has taken."""
    over = threading.Event()

    def look() -> None:
        taken: dict[int, int] = {}
        while not over.wait(1):
            for query in spark.streams.active:
                taken |= {p["batchId"]: p["numInputRows"] for p in query.recentProgress if query.name == "ingest"}
            if taken:
                watch(INGEST, f"reading Kafka: {sum(taken.values()):,} events")

    thread = threading.Thread(target=look, daemon=True)
    thread.start()
    try:
        yield
    finally:
        over.set()
        thread.join()


def lines(watch: Watch, name: str = "") -> Callable[[str], None]:
    """The lines that the lake tells of its work, as steps."""

    def line(said: str) -> None:
        about, colon, state = said.partition(": ")
        if colon and "." in about and " " not in about:
            watch(about, f"done: {state}")
        else:
            watch(name or "lake", said)

    return line


def require_kafka(settings: Settings) -> None:
    """Before Spark takes ten seconds to find out."""
    from shared.kafka import open_admin

    async def ask() -> None:
        async with open_admin(settings) as admin:
            await admin.describe_cluster()

    asyncio.run(ask())


def require_lake(settings: Settings) -> None:
    from analytics.reading.asking import found_tables

    if not found_tables(settings):
        raise OperatorError(f"There is no lake yet in {settings.lake}.", "It is made by: till lake run")


def ingested_events(settings: Settings) -> int:
    from analytics.commits import ingested

    commit = ingested(settings)
    return _events(commit.offsets) if commit else 0


def _events(offsets: Any) -> int:
    return sum(offset for partitions in offsets.values() for offset in partitions.values())


def _compared(name: str, difference: "Difference | None", swapped: bool) -> str:
    told = "there was none before" if difference is None else _counted(difference)
    if swapped:
        return f"gold.{name} is computed anew and live: {told}. To undo it: till lake replay {name} --undo"
    return f"replay.{name} is computed, beside the live one: {told}."


def _counted(difference: "Difference") -> str:
    kinds = {"added": difference.added, "gone": difference.gone, "changed": difference.changed}
    return f"{difference.rows:,} rows, " + ", ".join(f"{count:,} {kind}" for kind, count in kinds.items())
