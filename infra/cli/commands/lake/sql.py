"""`till sql`: a question to the lake, answered without Spark."""

import csv
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import datetime
from itertools import islice
from typing import TYPE_CHECKING

import click
from rich.text import Text

from infra.cli.cells import as_json as object_of
from infra.cli.cells import field, print_rows
from infra.cli.console import as_json, err
from infra.cli.moments import MOMENT, both
from infra.cli.refusals import BadInput
from shared.errors import OperatorError
from shared.settings import Settings

if TYPE_CHECKING:
    from analytics.reading.asking import Answer

SHOWN = 100


@click.command()
@click.argument("query", metavar="QUERY")
@click.option("--at", type=MOMENT, help="As the lake was then: RFC 3339, or -5m, -2h, -1d.")
@click.option("--limit", type=click.IntRange(0), help=f"Rows to print; 0 is all.  [default: {SHOWN}, all to machines]")
@click.option("--csv", "as_csv", is_flag=True, help="Print CSV.")
@as_json
def sql(query: str, at: datetime | None, limit: int | None, as_csv: bool, as_json: bool) -> None:
    """Ask the lake. QUERY is one SELECT (DuckDB's SQL), or - to read it from standard input.

    Tables are bronze.events, silver.*, gold.*; where there was a till lake batch, also batch.*, speed.*, and serving.*,
    which is both. Nothing can be written. With --at, all tables of the query are shown as of one moment: what had been
    committed then, up to the same messages of Kafka.

    \b
    Examples:
      till sql "SHOW ALL TABLES"
      till sql "SELECT status, count(*) FROM gold.orders GROUP BY ALL"
      till sql "SELECT * FROM silver.quarantine" --json
      till sql "SELECT count(*) FROM silver.order_events" --at -5m
      till sql "SELECT item_added.sku, sum(item_added.quantity) FROM silver.cart_events GROUP BY 1 ORDER BY 2 DESC"
    """
    if as_csv and as_json:
        raise click.UsageError("--csv or --json, not both.")
    with said_in_a_line():
        from analytics.reading.asking import ask

        answer = ask(Settings.load(), sys.stdin.read() if query == "-" else query, at)
        if at:
            versions = ", ".join(f"{name} version {version}" for name, version in answer.versions.items())
            err.print(Text(f"As of {both(at)}: {versions}.", "dim"))
        if as_json:
            _print_json(answer, limit)
        elif as_csv:
            _print_csv(answer, limit)
        else:
            _print_table(answer, SHOWN if limit is None else limit)


@contextmanager
def said_in_a_line() -> Iterator[None]:
    try:
        from analytics.reading.queries import WrongQuery
    except ModuleNotFoundError as missing:
        raise OperatorError(f"{missing.name} is not installed here.", "A service image carries no lake.") from missing
    try:
        yield
    except WrongQuery as wrong:
        raise BadInput(str(wrong)) from wrong


def _print_table(answer: "Answer", limit: int) -> None:
    rows = list(islice(answer.rows, limit or None))
    print_rows(answer.columns, answer.types, rows)
    if limit and next(answer.rows, None) is not None:
        err.print(Text(f"The first {limit:,} rows; there are more. All of them: --limit 0", "dim"))
    elif not rows:
        err.print(Text("No rows.", "dim"))


def _print_json(answer: "Answer", limit: int | None) -> None:
    """An array, row by row as they come."""
    click.echo("[", nl=False)
    for n, row in enumerate(islice(answer.rows, limit or None)):
        click.echo(("," if n else "") + "\n  " + object_of(answer.columns, answer.types, row), nl=False)
    click.echo("\n]")


def _print_csv(answer: "Answer", limit: int | None) -> None:
    lines = csv.writer(sys.stdout, lineterminator="\n")
    lines.writerow(answer.columns)
    for row in islice(answer.rows, limit or None):
        lines.writerow(map(field, row, answer.types))
