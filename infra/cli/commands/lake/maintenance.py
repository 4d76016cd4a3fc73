"""`till lake optimize` and `till lake retry`: what a lake needs now and then."""

from dataclasses import asdict

import click
from rich.text import Text

from infra.cli.cells import print_rows
from infra.cli.console import as_json as json_option
from infra.cli.console import out, print_json
from infra.cli.lake_spark import alone
from infra.cli.lake_work import opened, require_lake
from infra.cli.progress import progress
from infra.cli.refusals import BadInput
from shared.settings import Settings

ASIDE = "SELECT reason, count(*) AS messages FROM silver.quarantine GROUP BY reason ORDER BY messages DESC, reason"


@click.command()
@click.argument("names", nargs=-1, metavar="[TABLE]...")
@click.option("--ordered", is_flag=True, help="Also sort again what is read by place: rewrites it whole.")
@click.option("--vacuum/--no-vacuum", "clean", default=True, show_default=True, help="Delete files that are too old.")
@json_option
def optimize(names: tuple[str, ...], ordered: bool, clean: bool, as_json: bool) -> None:
    """Make small files into large ones, and delete those that no version within TILL_LAKE_HISTORY_DAYS needs.

    What can be read, also with --at, stays the same. It may run beside till lake stream.

    \b
    Examples:
      till lake optimize
      till lake optimize silver.cart_events --no-vacuum
    """
    from analytics.reading.asking import found_tables

    settings = Settings.load()
    require_lake(settings)
    if unknown := set(names) - set(found_tables(settings)):
        raise BadInput(f"There is no table {', '.join(sorted(unknown))}.", "There are those of: till lake tables")
    with progress(quiet=as_json) as watch, opened(settings, watch) as spark:
        from analytics import care
        from analytics.tables import table_names

        done = []
        for name in names or table_names(spark, settings):
            watch(name, "compacting")
            done += care.optimize(spark, settings, [name], ordered=ordered)
            if clean:
                watch(name, "deleting what is too old")
                care.vacuum(spark, settings, [name])
            watch(name, "done")
    if as_json:
        print_json([asdict(one) for one in done])
        return
    rows = [(one.table, one.removed, one.added) for one in done if one.removed]
    if rows:
        print_rows(["table", "files", "made into"], ["VARCHAR", "INTEGER", "INTEGER"], rows)
    else:
        out.print("No table has small files to be put together.")


@click.command()
@json_option
@click.pass_context
def retry(context: click.Context, as_json: bool) -> None:
    """Try again what is in silver.quarantine, after a fix. Exit code 1 when messages stay there.

    What can be read now goes to silver and leaves quarantine; then `till lake run` brings gold up to date.

    \b
    Examples:
      till sql "SELECT topic, reason, count(*) FROM silver.quarantine GROUP BY ALL"
      till lake retry
    """
    from analytics.reading.asking import ask

    settings = Settings.load()
    require_lake(settings)
    with alone(settings), progress(quiet=as_json) as watch, opened(settings, watch) as spark:
        from analytics.ingest.retry import retry_quarantine

        watch("quarantine", "trying again")
        mended = retry_quarantine(spark, settings)
        watch("quarantine", "done")
    left = list(ask(settings, ASIDE).rows)
    if as_json:
        print_json({"mended": mended, "left": dict(left)})
    else:
        then = " To bring gold up to date: till lake run" if mended else ""
        out.print(f"Messages that could be read now: {mended:,}.{then}")
        for reason, messages in left:
            out.print(Text("✗ ", "bold red").append(f"{messages:,} stay: {reason}", "default"))
    context.exit(1 if left else 0)
