"""`till lake optimize` and `till lake retry`: maintenance of the lake."""

from dataclasses import asdict

import click
from rich.text import Text

from infra.cli.commands.lake.spark import alone, open_lake, require_lake
from infra.cli.render.console import json_option, out, print_json
from infra.cli.render.errors import BadInput
from infra.cli.render.program import program
from infra.cli.render.progress import progress
from infra.cli.render.tables import print_rows
from infra.settings import Settings

QUARANTINED = (
    "SELECT reason, count(*) AS messages FROM silver.quarantine GROUP BY reason ORDER BY messages DESC, reason"
)


@click.command()
@click.argument("names", nargs=-1, metavar="[TABLE]...")
@click.option("--ordered", is_flag=True, help="Also Z-order bronze by topic, partition and offset (rewrites it).")
@click.option(
    "--vacuum/--no-vacuum", "clean", default=True, show_default=True, help="Delete files that no kept version needs."
)
@json_option
def optimize(names: tuple[str, ...], ordered: bool, clean: bool, as_json: bool) -> None:
    """Compact small files, and delete files that are too old.

    A file is deleted when no version of the last TILL_LAKE_HISTORY_DAYS days needs it. Within these days, queries give
    the same answers as before, also with --at. It may run at the same time as till lake stream.

    \b
    Examples:
      till lake optimize
      till lake optimize silver.cart_events --no-vacuum
    """
    settings = Settings.load()
    tables = require_lake(settings)
    if unknown := set(names) - set(tables):
        raise BadInput(f"There is no table {', '.join(sorted(unknown))}.", "List the tables with: till lake tables")
    with progress(quiet=as_json) as shown, open_lake(settings, shown.note) as lake:
        from analytics import maintenance

        done = []
        for name in names or maintenance.stored_tables(lake):
            shown.note(name, "compacting")
            done += maintenance.optimize(lake, [name], ordered=ordered)
            if clean:
                shown.note(name, "deleting old files")
                maintenance.vacuum(lake, [name])
            shown.note(name, "done")
    if as_json:
        print_json([asdict(one) for one in done])
        return
    rows = [(one.table, one.removed, one.added) for one in done if one.removed]
    if rows:
        print_rows(["table", "files", "compacted into"], ["VARCHAR", "INTEGER", "INTEGER"], rows)
    else:
        out.print("No table has small files to compact.")


@click.command()
@json_option
@click.pass_context
def retry(context: click.Context, as_json: bool) -> None:
    """Retry the messages in silver.quarantine, after a fix. Exit code 1 when messages stay there.

    Messages that can be decoded now move to silver; then `till lake run` brings gold up to date.

    \b
    Examples:
      till sql "SELECT topic, reason, count(*) FROM silver.quarantine GROUP BY ALL"
      till lake retry
    """
    from analytics.query.ask import ask

    settings = Settings.load()
    require_lake(settings)
    with alone(settings), progress(quiet=as_json) as shown, open_lake(settings, shown.note) as lake:
        from analytics.ingest.retry import retry_quarantine

        shown.note("quarantine", "trying again")
        decoded = retry_quarantine(lake)
        shown.note("quarantine", "done")
    left = list(ask(lake, QUARANTINED).rows)
    if as_json:
        print_json({"mended": decoded, "left": dict(left)})
    else:
        then = f" To bring gold up to date: {program()} lake run" if decoded else ""
        out.print(f"Messages that could be decoded now: {decoded:,}.{then}")
        for reason, messages in left:
            out.print(Text("✗ ", "bold red").append(f"{messages:,} stay: {reason}", "default"))
    context.exit(1 if left else 0)
