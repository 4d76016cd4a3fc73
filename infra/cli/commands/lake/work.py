"""`till lake run`, `batch`, `replay` and `verify`: Spark does the work, then the command ends."""

from collections.abc import Callable, Sequence
from dataclasses import asdict
from time import monotonic
from typing import TYPE_CHECKING, Any

import click
from rich.text import Text

from infra.cli.commands.lake.spark import Watch, alone, open_lake, require_kafka, require_lake
from infra.cli.render.console import json_option, out, print_json
from infra.cli.render.errors import BadInput
from infra.cli.render.program import program
from infra.cli.render.progress import progress
from infra.cli.render.tables import print_rows
from infra.settings import Settings

if TYPE_CHECKING:
    from analytics.comparison import Difference


@click.command()
@click.option(
    "--accept",
    multiple=True,
    metavar="TOPIC",
    help="Read this topic again from its start: it was deleted and created again. Repeatable.",
)
@json_option
def run(accept: tuple[str, ...], as_json: bool) -> None:
    """Bring all tables up to date with Kafka, then stop.

    First fraud alerts, then bronze and silver, then gold. Each run continues where the last one ended, even if that
    one was killed.

    \b
    Examples:
      till lake run
      till lake run --json
      till lake run --accept cart.events      after the topic was deleted and refilled from the store
    """
    done = bring_lake_up_to_date(Settings.load(), quiet=as_json, accepted=accept)
    if as_json:
        print_json(done)
        return
    out.print(f"New events from Kafka: {done['events']:,}. The lake is up to date, after {done['seconds']:.0f} s.")
    for name in (name for name, state in done["gold"].items() if state == "waits for a replay"):
        out.print(
            Text(f"gold.{name} was computed by older code. To recompute it: {program()} lake replay {name}", "yellow")
        )


def bring_lake_up_to_date(settings: Settings, quiet: bool, accepted: Sequence[str] = ()) -> dict[str, Any]:
    """Updates all tables. Returns how many events are new, and what was done with each gold table."""
    require_kafka(settings)
    began = monotonic()
    with alone(settings), progress(quiet) as shown, open_lake(settings, shown.note) as lake:
        from analytics.pipeline import update

        done = update(lake, shown.note, lines_as_steps(shown.note), accepted)
    return {"events": done.events, "gold": done.gold, "seconds": round(monotonic() - began, 1)}


@click.command()
@json_option
def batch(as_json: bool) -> None:
    """Compute all gold tables from bronze (Lambda's batch layer).

    The tables are written to batch.*. From then on `till lake run` and `till lake stream` maintain the speed layer,
    speed.*, with everything that has changed since, and serving.* combines both.

    \b
    Example:
      till lake batch
    """
    settings = Settings.load()
    require_lake(settings)
    with progress(quiet=as_json) as shown, open_lake(settings, shown.note) as lake:
        from analytics.serving.batch_layer import recompute_batch_layer

        cut = recompute_batch_layer(lake, lines_as_steps(shown.note))
    if as_json:
        print_json(asdict(cut))
        return
    from analytics.log.offsets import total

    out.print(f"batch.* is computed, up to batch {cut.batch} of the ingest: {total(cut.offsets):,} events.")


@click.command()
@click.argument("name", metavar="TABLE")
@click.option(
    "--from",
    "source",
    type=click.Choice(["bronze", "kafka"]),
    default="bronze",
    show_default=True,
    help="Where to read the events.",
)
@click.option("--swap/--no-swap", default=True, show_default=True, help="Replace the live table.")
@click.option("--undo", is_flag=True, help="Go back to the table before the last replay.")
@json_option
def replay(name: str, source: str, swap: bool, undo: bool, as_json: bool) -> None:
    """Recompute a gold table and swap it (Kappa's replay).

    Use it after a change of logic. The new table is compared with the live one first. The live table can be read and
    written in the meantime; the swap is one commit. With --no-swap the new table stays next to the live one: till sql
    "SELECT * FROM replay.TABLE".

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
    with progress(quiet=as_json) as shown, open_lake(settings, shown.note) as lake:
        from analytics.serving import replay

        if undo:
            cut = replay.undo(lake, name)
        else:
            replayed = replay.replay(lake, name, source, lines_as_steps(shown.note, f"gold.{name}"), swap)  # type: ignore[arg-type]
    if undo:
        document = asdict(cut)
        then = f"To bring it up to date: {program()} lake run"
        message = f"gold.{name} is as before the last replay, up to batch {cut.batch}. {then}"
    else:
        document = asdict(replayed)
        message = _compared(name, replayed.difference, replayed.swapped)
    if as_json:
        print_json(document)
        return
    out.print(message)
    if not undo and replayed.difference:
        show_difference(replayed.difference, "replayed", "live")


def _require_table(name: str) -> None:
    """Refuses an unknown table before Spark is started for it."""
    from analytics.catalog import GOLD_NAMES

    if name not in GOLD_NAMES:
        raise BadInput(f"There is no gold table {name}. There are: {', '.join(GOLD_NAMES)}.")


@click.command()
@json_option
@click.pass_context
def verify(context: click.Context, as_json: bool) -> None:
    """Compare every gold table with a recomputation from bronze.

    Tables are compared row by row. If there is a batch layer, the serving layer is compared as well. Exit code 1 when
    rows differ; the first of them are shown.

    \b
    Example:
      till lake verify
    """
    settings = Settings.load()
    require_lake(settings)
    with progress(quiet=as_json) as shown, open_lake(settings, shown.note) as lake:
        from analytics.verify import verify as compare_all

        found = compare_all(lake, lines_as_steps(shown.note))
    if not found.verdicts:
        raise lake.missing("gold table")
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


def lines_as_steps(watch: Watch, name: str = "") -> Callable[[str], None]:
    """Converts the lines that the lake reports about its work to steps."""

    def line(reported: str) -> None:
        about, colon, state = reported.partition(": ")
        if colon and "." in about and " " not in about:
            watch(about, f"done: {state}")
        else:
            watch(name or "lake", reported)

    return line


def _compared(name: str, difference: "Difference | None", swapped: bool) -> str:
    result = "there was none before" if difference is None else _counted(difference)
    if swapped:
        return f"gold.{name} is recomputed and live: {result}. To undo it: {program()} lake replay {name} --undo"
    return f"replay.{name} is computed, next to the live one: {result}."


def _counted(difference: "Difference") -> str:
    kinds = {"added": difference.added, "gone": difference.gone, "changed": difference.changed}
    return f"{difference.rows:,} rows, " + ", ".join(f"{count:,} {kind}" for kind, count in kinds.items())
