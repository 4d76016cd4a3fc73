"""`till rebuild`: a view folded anew from its events, beside the live one, then swapped."""

import os
from dataclasses import asdict
from datetime import datetime
from typing import TYPE_CHECKING, Any

import click
from rich.table import Table
from rich.text import Text

from infra.cli.console import as_json, err, out, print_json
from infra.cli.moments import MOMENT, both
from infra.cli.pace import Pace, pacing
from infra.cli.refusals import BadInput, reading
from shared.settings import Settings

if TYPE_CHECKING:
    from services.replay.compared import Difference
    from services.replay.rebuild import Progress, Rebuilt, Source
    from services.replay.targets import Target

NICE = 10
WORDS = {
    "changed": "were not what their events make them",
    "missing": "were missing",
    "extra": "were there without events",
    "behind": "were older than their events",
    "ahead": "were newer than their events",
}


@click.command()
@click.argument("view", metavar="VIEW|SERVICE")
@click.option(
    "--from",
    "source",
    type=click.Choice(["store", "kafka"]),
    default="store",
    show_default=True,
    help="Where its events are read: in the store of the service that wrote them, or in the topic.",
)
@click.option("--at", "moment", type=MOMENT, help="As it was then: built beside, to be looked at. Nothing is swapped.")
@click.option("--undo", "back", is_flag=True, help="Back to the one that the last rebuild replaced.")
@as_json
def rebuild(view: str, source: "Source", moment: datetime | None, back: bool, as_json: bool) -> None:
    """Build a view anew from its events, beside the live one, while the shop goes on selling.

    Nothing but the view is touched: no command, no provider, no message. When it has caught up it is compared with the
    live one row by row, and takes its place in one transaction with the offsets of its consumer. The old one is kept
    for --undo. Whatever ends it before, the live view is untouched, and the same command goes on where it was.

    \b
    Examples:
      till rebuild orders                    of the service order, from its store
      till rebuild catalog --from kafka      all views of a service, from their topics
      till rebuild orders --undo             the one before is back, with what has happened since
      till rebuild orders --at -1h           as it was an hour ago, in a table of its own
    """
    import uvloop

    from infra.events import declared_services
    from services.replay.rebuild import NothingThere
    from services.replay.targets import NoSuchView, find

    if back and (moment or source != "store"):
        raise click.UsageError("--undo goes back to what was there before: it takes neither --at nor --from.")
    settings = Settings.load()
    try:
        found = find(declared_services(settings), view)
    except NoSuchView as wrong:
        raise BadInput(str(wrong)) from None
    os.nice(NICE)  # the shop comes first
    done = []
    with pacing(quiet=as_json) as pace:
        for target in found:
            try:
                done.append(reading(_work(settings, target, source, moment, back, pace), uvloop.run))
            except NothingThere as nothing:
                raise BadInput(str(nothing)) from None
            except KeyboardInterrupt:
                err.print(f"Interrupted. {target.name} is as it was; the same command goes on where it stopped.")
                raise
    if as_json:
        print_json([_document(it, moment) for it in done])
        return
    for it in done:
        _show(it, moment)


async def _work(
    settings: Settings, target: "Target", source: "Source", moment: datetime | None, back: bool, pace: Pace
) -> "Rebuilt":
    from infra.events import declared_services
    from services.replay.rebuild import rebuild, rebuild_at, undo
    from services.replay.topics import kafka_of
    from shared import crashpoints

    crashpoints.arm(settings.crash_at)
    services = declared_services(settings)

    def report(progress: "Progress") -> None:
        pace.note(progress.view, progress.phase, progress.done, progress.total)

    with kafka_of(settings):
        if back:
            return await undo(settings, services, target, report)
        if moment:
            return await rebuild_at(settings, services, target, moment, source, report)
        return await rebuild(settings, services, target, source, report)


def _document(done: "Rebuilt", moment: datetime | None) -> dict[str, Any]:
    compared = done.comparison
    return {
        "view": done.view,
        "from": done.source,
        "at": moment,
        "events": done.events,
        "resumed": done.resumed,
        "caught_up": done.caught_up,
        "seconds": round(done.seconds, 3),
        "rows": done.rows,
        "schema": done.schema,
        "in_flight": done.in_flight,
        "differences": compared and {"counts": compared.counts, "shown": [asdict(it) for it in compared.shown]},
        "aside": [it._asdict() for it in done.aside],
    }


def _show(done: "Rebuilt", moment: datetime | None) -> None:
    if done.source == "undo":
        out.print(Text.assemble(("✓ ", "green"), (done.view, "bold"), f": the one before is back, {done.rows:,} rows."))
        out.print(f"  {done.caught_up:,} messages that came since have been applied to it.")
        _show_comparison(done)
        return
    read = f"{done.events:,} events from the store" if done.events else f"{done.caught_up:,} messages from Kafka"
    more = f" ({done.resumed:,} of them by a run before)" if done.resumed else ""
    rate = f", {(done.events - done.resumed) / done.seconds:,.0f} a second" if done.events > done.resumed else ""
    out.print(Text.assemble(("✓ ", "green"), (done.view, "bold"), f": {done.rows:,} rows of {read}{more}{rate}."))
    for one in done.aside[:10]:
        out.print(Text(f"  set aside, as by the live one: {one.stream_id}@{one.version}: {one.reason}", "yellow"))
    if moment:
        table = f'"{done.schema}".{done.view.partition(".")[2]}'
        out.print(f"  It is {table}, as of {both(moment)}. When you have seen enough:")
        out.print(f'  DROP SCHEMA "{done.schema}" CASCADE')
        return
    _show_comparison(done)


def _show_comparison(done: "Rebuilt") -> None:
    compared = done.comparison
    assert compared
    if not compared.total:
        out.print("  Row by row the same as the live one, and in its place now.")
    for kind, count in compared.counts.items():
        on_its_way = " (the live one had not been told everything yet)" if done.in_flight else ""
        out.print(f"  {count:,} rows {WORDS[kind]}{on_its_way if kind in ('missing', 'behind') else ''}.")
    if compared.shown:
        out.print(_differences(compared.shown))
    out.print(Text(f"  The one before is kept. Back to it: till rebuild {done.view} --undo", "dim"))


def _differences(shown: "list[Difference]") -> Table:
    table = Table("  key", "", "was", "is", box=None, header_style="dim")
    for difference in shown:
        fields = difference.fields or {"": ("", "")}
        for n, (name, (was, now)) in enumerate(fields.items()):
            head = (f"  {difference.key}", difference.kind) if n == 0 else ("", "")
            said = (f"{name} {was}", f"{name} {now}") if name else ("", "")
            table.add_row(*head, *said)
    return table
