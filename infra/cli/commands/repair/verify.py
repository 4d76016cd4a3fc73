"""`till verify`: everything that must always hold, checked from the stores."""

from dataclasses import asdict
from datetime import datetime
from typing import TYPE_CHECKING

import click
from rich.table import Table
from rich.text import Text

from infra.cli.console import as_json, out, print_json
from infra.cli.moments import MOMENT, both
from infra.cli.pace import pacing
from infra.cli.refusals import reading
from shared.settings import Settings

if TYPE_CHECKING:
    from services.replay.checks.findings import Findings, Violation

SHOWN = 20


@click.command()
@click.option("--since", type=MOMENT, help="Only what has happened since, and the streams it happened to.")
@click.option(
    "--patience",
    default=10.0,
    show_default=True,
    type=click.FloatRange(0, 600),
    help="Seconds that what is on its way has to arrive.",
)
@as_json
@click.pass_context
def verify(context: click.Context, since: datetime | None, patience: float, as_json: bool) -> None:
    """Check that store = topic = views = the provider's ledger = lake. Exit code 1 on any violation.

    Each violation is told with its stream, its place and a command to look closer. The shop may sell meanwhile: what
    is on its way is not taken for lost. Nothing is changed.

    \b
    Examples:
      till verify                  all of history
      till verify --since -1h      the last hour
    """
    import uvloop

    from infra.events import declared_services
    from infra.lake_reader import open_lake
    from services.replay.verify import Ask, seldom_collect, verify

    seldom_collect()
    ask = Ask(Settings.load(), declared_services, since, patience, lake=open_lake)
    looked: dict[str, int] = {}
    with pacing(quiet=as_json) as pace:

        def report(check: str, more: int) -> None:
            looked[check] = looked.get(check, 0) + more
            pace.note(check, "looking", looked[check])

        findings = reading(verify(ask, report), uvloop.run)
    if as_json:
        print_json({"ok": not any(it.total for it in findings), "checks": [asdict(it) for it in findings]})
    else:
        _show(findings, since)
    context.exit(1 if any(it.total for it in findings) else 0)


def _show(findings: "list[Findings]", since: datetime | None) -> None:
    table = Table("", "check", "looked at", "seconds", "violations", box=None, header_style="dim")
    for column in table.columns[2:]:
        column.justify = "right"
    for it in findings:
        mark = Text("✗", "bold red") if it.total else Text("✓", "green")
        counts = f"{it.looked_at:,} {it.unit}" if it.looked_at else ""
        table.add_row(mark, it.check, counts, f"{it.seconds:.1f}", f"{it.total:,}" if it.total else "")
    out.print(table)
    for it in findings:
        for violation in it.violations[:SHOWN]:
            _print(it.check, violation)
        if it.total > SHOWN:
            out.print(Text(f"  … and {it.total - SHOWN:,} more of {it.check}. With --json, the first hundred.", "dim"))
    for note in (note for it in findings for note in it.notes):
        out.print(Text(f"· {note}", "dim"))
    total = sum(it.total for it in findings)
    seen = f"since {both(since)}" if since else "in all of history"
    out.print(Text(f"✗ {total:,} violations {seen}.", "bold red") if total else Text(f"✓ All holds, {seen}.", "green"))


def _print(check: str, violation: "Violation") -> None:
    where = "  ".join(filter(None, (violation.stream, violation.position)))
    out.print(Text.assemble(("✗ ", "bold red"), (f"{check}  ", "dim"), (where, "bold")))
    out.print(Text(f"    {violation.what}"))
    if violation.look:
        out.print(Text(f"    → {violation.look}", "dim"))
