"""`till whatif decisions`: decides the commands of the past again, with the code of today."""

from datetime import datetime
from typing import TYPE_CHECKING

import click
from rich.table import Table
from rich.text import Text

from infra.cli.render.console import json_option, out, print_json
from infra.cli.render.errors import BadInput, run_query
from infra.cli.render.moments import FORMATS, MOMENT, absolute
from infra.cli.render.progress import progress
from infra.settings import Settings

if TYPE_CHECKING:
    from services.operations.whatif.decisions import ComparedDecisions

SHOWN = 30


@click.command()
@click.argument("service", required=False)
@click.option("--from", "start", type=MOMENT, help=f"Only decisions from this moment on: {FORMATS}.")
@click.option("--to", "end", type=MOMENT, help="Only decisions up to this moment.")
@json_option
def decisions(service: str | None, start: datetime | None, end: datetime | None, as_json: bool) -> None:
    """Decide past commands again with today's code, and compare.

    The command of a request is derived from the events it led to, that of a reaction from the event that caused it. It
    is decided on the state as it was then, and compared with what was recorded. A command that was refused or had no
    effect left no trace, so it cannot be decided again. The verdict of the risk check is taken as recorded; for that,
    see till whatif fraud. Nothing is changed.

    \b
    Examples:
      till whatif decisions                    every decision of every service
      till whatif decisions cart --from -1d    carts, since yesterday
    """
    from services.operations.whatif.decisions import compare_decisions
    from services.operations.whatif.recorded_decisions import Window
    from services.shop.services import shop_services

    if start and end and start > end:
        raise click.UsageError("--from is after --to.")
    settings = Settings.load()
    services = shop_services(settings)
    names = [it.name for it in services]
    if service and service not in names:
        raise BadInput(f"There is no service {service}. There are: {', '.join(names)}.")
    done: dict[str, int] = {}
    with progress(quiet=as_json) as shown:

        def on_read(name: str, more: int) -> None:
            done[name] = done.get(name, 0) + more
            shown.count(name, "deciding again", done[name])

        compared = run_query(
            compare_decisions(settings, services, [service] if service else names, Window(start, end), on_read)
        )
    if as_json:
        print_json([_document(it) for it in compared])
    else:
        _show(compared)


def _document(compared: "ComparedDecisions") -> dict[str, object]:
    return {
        "service": compared.service,
        "decisions": compared.decisions,
        "same": compared.same,
        "different": compared.different,
        "differences": [it._asdict() for it in compared.differences],
        "underivable": dict(compared.underivable),
    }


def _show(compared: "list[ComparedDecisions]") -> None:
    table = Table("service", "decisions", "as recorded", "different", "not derivable", box=None)
    table.header_style = "dim"
    for column in table.columns[1:]:
        column.justify = "right"
    for it in compared:
        counts = (it.decisions, it.same, it.different, it.underivable.total())
        table.add_row(it.service, *(f"{count:,}" for count in counts))
    out.print(table)
    different = [difference for it in compared for difference in it.differences]
    if different:
        rows = Table("stream", "version", "when", "command", "recorded", "today", box=None, header_style="bold")
        for one in different[:SHOWN]:
            rows.add_row(
                one.stream, str(one.version), absolute(one.time), one.command, one.recorded, Text(one.decided, "yellow")
            )
        out.print(rows)
    total = sum(it.different for it in compared)
    if total > SHOWN:
        out.print(Text(f"… and {total - SHOWN:,} more. With --json, the first thousand of each service.", "dim"))
    for it in compared:
        for why, count in it.underivable.most_common():
            out.print(Text(f"· {it.service}: {count:,} of {why}", "dim"))
    if not total:
        out.print(Text("✓ Today's code decides everything as it was decided.", "green"))
