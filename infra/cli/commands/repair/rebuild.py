"""`till rebuild`: rebuilds a view from its events next to the live one, compares them, and swaps them."""

import os
from dataclasses import asdict
from datetime import datetime
from typing import TYPE_CHECKING, Any

import click
from rich.table import Table
from rich.text import Text

from infra.cli.render.console import err, json_option, out, print_json
from infra.cli.render.errors import BadInput, run_query
from infra.cli.render.moments import FORMATS, MOMENT, both
from infra.cli.render.program import program
from infra.cli.render.progress import Display, progress
from infra.settings import Settings

if TYPE_CHECKING:
    from services.operations.reading.views import Target
    from services.operations.rebuild.build import Progress, Rebuilt, Source
    from services.operations.rebuild.comparison import RowDifference

NICE = 10
WORDS = {
    "changed": "differed from their events",
    "missing": "were missing",
    "extra": "had no events",
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
    help="Where to read its events: in the store of the service that wrote them, or in the topic.",
)
@click.option(
    "--at",
    "moment",
    type=MOMENT,
    help=f"Build the view as it was at this moment ({FORMATS}), in its own table. Nothing is swapped.",
)
@click.option("--undo", "back", is_flag=True, help="Go back to the view that the last rebuild replaced.")
@json_option
def rebuild(view: str, source: "Source", moment: datetime | None, back: bool, as_json: bool) -> None:
    """Rebuild a view from its events, next to the live one, while the shop goes on selling.

    VIEW is a view, such as orders or cart.products; SERVICE stands for all its views. Side effects are off: no command,
    no call to the provider, no message. When the new view has caught up, it is compared with the live one row by row,
    and replaces it in one transaction with the offsets of its consumer. The old one is kept for --undo. If it is
    interrupted, the live view is unchanged, and the same command continues.

    \b
    Examples:
      till rebuild orders                    one view, from the store
      till rebuild catalog --from kafka      all views of a service, from their topics
      till rebuild orders --undo             the previous view, brought up to date
      till rebuild orders --at -1h           as it was an hour ago, in its own table
    """
    import uvloop

    from services.operations.reading.views import NoSuchView, find_views
    from services.operations.rebuild.build import NothingThere
    from services.shop.services import shop_services

    if back and (moment or source != "store"):
        raise click.UsageError("--undo goes back to the previous view: it takes neither --at nor --from.")
    settings = Settings.load()
    try:
        found = find_views(shop_services(settings), view)
    except NoSuchView as wrong:
        raise BadInput(str(wrong)) from None
    os.nice(NICE)  # the shop comes first
    done = []
    with progress(quiet=as_json) as shown:
        for target in found:
            try:
                done.append(run_query(_work(settings, target, source, moment, back, shown), uvloop.run))
            except NothingThere as nothing:
                raise BadInput(str(nothing)) from None
            except KeyboardInterrupt:
                err.print(f"Interrupted. {target.name} is unchanged; the same command continues where it stopped.")
                raise
    if as_json:
        print_json([_document(it, moment) for it in done])
        return
    for it in done:
        _show(it, moment)


async def _work(
    settings: Settings, target: "Target", source: "Source", moment: datetime | None, back: bool, shown: Display
) -> "Rebuilt":
    from services.operations.rebuild.rebuild import rebuild, rebuild_at, undo
    from services.shop.services import shop_services
    from shared.messaging.kafka import kafka_errors
    from shared.recovery import crash_points

    crash_points.arm(settings.crash_at)
    services = shop_services(settings)

    def report(progress: "Progress") -> None:
        shown.count(progress.view, progress.phase, progress.done, progress.total)

    with kafka_errors(settings):
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
        out.print(
            Text.assemble(("✓ ", "green"), (done.view, "bold"), f": the previous view is back, {done.rows:,} rows.")
        )
        out.print(f"  {done.caught_up:,} messages that arrived since then have been applied to it.")
        _show_comparison(done)
        return
    read = f"{done.events:,} events from the store" if done.events else f"{done.caught_up:,} messages from Kafka"
    more = f" ({done.resumed:,} of them by an earlier run)" if done.resumed else ""
    rate = f", {(done.events - done.resumed) / done.seconds:,.0f} a second" if done.events > done.resumed else ""
    out.print(Text.assemble(("✓ ", "green"), (done.view, "bold"), f": {done.rows:,} rows of {read}{more}{rate}."))
    for one in done.aside[:10]:
        out.print(Text(f"  skipped, as in the live view: {one.stream_id}@{one.version}: {one.reason}", "yellow"))
    if moment:
        table = f'"{done.schema}".{done.view.partition(".")[2]}'
        out.print(f"  It is in {table}, as of {both(moment)}. To delete it:")
        out.print(f'  DROP SCHEMA "{done.schema}" CASCADE')
        return
    _show_comparison(done)


def _show_comparison(done: "Rebuilt") -> None:
    compared = done.comparison
    assert compared
    if not compared.total:
        out.print("  It equals the live view row by row, and has replaced it.")
    for kind, count in compared.counts.items():
        on_its_way = " (messages were still on their way to the live view)" if done.in_flight else ""
        out.print(f"  {count:,} rows {WORDS[kind]}{on_its_way if kind in ('missing', 'behind') else ''}.")
    if compared.shown:
        out.print(_differences(compared.shown))
    out.print(Text(f"  The previous view is kept. To go back: {program()} rebuild {done.view} --undo", "dim"))


def _differences(shown: "list[RowDifference]") -> Table:
    table = Table("  key", "", "was", "is", box=None, header_style="dim")
    for difference in shown:
        fields = difference.fields or {"": ("", "")}
        for n, (name, (was, now)) in enumerate(fields.items()):
            head = (f"  {difference.key}", difference.kind) if n == 0 else ("", "")
            values = (f"{name} {was}", f"{name} {now}") if name else ("", "")
            table.add_row(*head, *values)
    return table
