"""`till verify`: checks every invariant of the shop against the stored data."""

from dataclasses import asdict
from datetime import datetime
from typing import TYPE_CHECKING

import click
from rich.table import Table
from rich.text import Text

from infra.cli.render.console import json_option, out, print_json
from infra.cli.render.errors import run_query
from infra.cli.render.moments import FORMATS, MOMENT, both
from infra.cli.render.program import callable_here
from infra.cli.render.progress import progress
from infra.settings import Settings

if TYPE_CHECKING:
    from services.operations.verify.findings import Findings, Violation

SHOWN = 20


@click.command()
@click.option(
    "--since",
    type=MOMENT,
    help=f"Check only streams that have events since this moment: {FORMATS}.",
)
@click.option(
    "--patience",
    default=10.0,
    show_default=True,
    type=click.FloatRange(0, 600),
    help="Seconds to wait for messages that are on their way.",
)
@json_option
@click.pass_context
def verify(context: click.Context, since: datetime | None, patience: float, as_json: bool) -> None:
    """Check that store, topics, views, the provider's ledger and the lake agree. Exit code 1 on any violation.

    Each violation is printed with its stream, its position and a command to investigate it. The shop may go on selling:
    messages that are on their way do not count as lost. Nothing is changed.

    \b
    Examples:
      till verify                  all of history
      till verify --since -1h      the last hour
    """
    import uvloop

    from infra.lake.reader import open_lake_reader
    from services.operations.verify.processes import collect_garbage_rarely
    from services.operations.verify.verify import VerifyRequest, verify
    from services.shop.services import shop_services

    collect_garbage_rarely()
    request = VerifyRequest(Settings.load(), shop_services, since, patience, open_lake=open_lake_reader)
    looked: dict[str, int] = {}
    with progress(quiet=as_json) as shown:

        def report(check: str, more: int) -> None:
            looked[check] = looked.get(check, 0) + more
            shown.count(check, "checking", looked[check])

        findings = run_query(verify(request, report), uvloop.run)
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
        out.print(Text(f"· {callable_here(note)}", "dim"))
    total = sum(it.total for it in findings)
    seen = f"since {both(since)}" if since else "in all of history"
    out.print(
        Text(f"✗ {total:,} violations {seen}.", "bold red") if total else Text(f"✓ Everything holds, {seen}.", "green")
    )


def _print(check: str, violation: "Violation") -> None:
    where = "  ".join(filter(None, (violation.stream, violation.position)))
    out.print(Text.assemble(("✗ ", "bold red"), (f"{check}  ", "dim"), (where, "bold")))
    out.print(Text(f"    {violation.what}"))
    if violation.look:
        out.print(Text(f"    → {callable_here(violation.look)}", "dim"))
