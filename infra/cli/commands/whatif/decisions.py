"""`till whatif decisions`: today's rules on yesterday's commands."""

from datetime import datetime
from typing import TYPE_CHECKING

import click
from rich.table import Table
from rich.text import Text

from infra.cli.console import as_json, out, print_json
from infra.cli.moments import MOMENT, absolute
from infra.cli.pace import pacing
from infra.cli.refusals import BadInput, reading
from shared.settings import Settings

if TYPE_CHECKING:
    from services.replay.decisions import Compared

SHOWN = 30


@click.command()
@click.argument("service", required=False)
@click.option("--from", "start", type=MOMENT, help="Decisions from then on.")
@click.option("--to", "end", type=MOMENT, help="Decisions up to then.")
@as_json
def decisions(service: str | None, start: datetime | None, end: datetime | None, as_json: bool) -> None:
    """Decide again what was decided, with the rules of today, and show where it comes out differently.

    Each command is found again: of a request from the events it led to, of a reaction from the event that was heard.
    It is decided on the state as it was then, and compared with what was recorded. What was refused or led to nothing
    left no trace, and cannot be asked again. What the risk check said is taken as it was: see till whatif fraud.
    Nothing is changed.

    \b
    Examples:
      till whatif decisions                    every decision of every service
      till whatif decisions cart --from -1d    carts, since yesterday
    """
    from infra.events import declared_services
    from services.replay.decisions import Window, compare_decisions

    if start and end and start > end:
        raise click.UsageError("--from is after --to.")
    settings = Settings.load()
    services = declared_services(settings)
    names = [it.name for it in services]
    if service and service not in names:
        raise BadInput(f"There is no service {service}. There are: {', '.join(names)}.")
    done: dict[str, int] = {}
    with pacing(quiet=as_json) as pace:

        def told(name: str, more: int) -> None:
            done[name] = done.get(name, 0) + more
            pace.note(name, "deciding again", done[name])

        compared = reading(
            compare_decisions(settings, services, [service] if service else names, Window(start, end), told)
        )
    if as_json:
        print_json([_document(it) for it in compared])
    else:
        _show(compared)


def _document(compared: "Compared") -> dict[str, object]:
    return {
        "service": compared.service,
        "decisions": compared.decisions,
        "same": compared.same,
        "different": compared.different,
        "differences": [it._asdict() for it in compared.differences],
        "underivable": dict(compared.underivable),
    }


def _show(compared: "list[Compared]") -> None:
    table = Table("service", "decisions", "as recorded", "different", "not to be found again", box=None)
    table.header_style = "dim"
    for column in table.columns[1:]:
        column.justify = "right"
    for it in compared:
        counts = (it.decisions, it.same, it.different, it.underivable.total())
        table.add_row(it.service, *(f"{count:,}" for count in counts))
    out.print(table)
    different = [difference for it in compared for difference in it.differences]
    if different:
        rows = Table("stream", "version", "when", "asked", "recorded", "today", box=None, header_style="bold")
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
        out.print(Text("✓ Today's rules decide all of it as it was decided.", "green"))
