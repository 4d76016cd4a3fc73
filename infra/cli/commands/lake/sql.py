"""`till sql`: queries the lake, without Spark."""

import csv
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import datetime
from itertools import islice
from typing import TYPE_CHECKING

import click
from rich.text import Text

from infra.cli.render.console import err, json_option
from infra.cli.render.errors import BadInput
from infra.cli.render.moments import FORMATS, MOMENT, both
from infra.cli.render.tables import print_rows
from infra.cli.render.values import csv_field, row_as_json
from infra.settings import Settings
from shared.errors import OperatorError

if TYPE_CHECKING:
    from analytics.query.ask import Answer

SHOWN = 100


@click.command()
@click.argument("query", metavar="QUERY")
@click.option("--at", type=MOMENT, help=f"Query the lake as it was then: {FORMATS}.")
@click.option(
    "--limit", type=click.IntRange(0), help=f"Rows to print; 0 means all.  [default: {SHOWN}; all for machines]"
)
@click.option("--csv", "as_csv", is_flag=True, help="Print CSV.")
@json_option
def sql(query: str, at: datetime | None, limit: int | None, as_csv: bool, as_json: bool) -> None:
    """Query the lake. QUERY is one SELECT in DuckDB's SQL, or - to read it from standard input.

    Tables are bronze.events, silver.* and gold.*; after a till lake batch also batch.*, speed.* and serving.*, which
    combines both. Nothing can be written. With --at, all tables are read as of one moment: what was committed then, up
    to the same messages of Kafka.

    \b
    Examples:
      till sql "SHOW ALL TABLES"
      till sql "SELECT status, count(*) FROM gold.orders GROUP BY ALL"
      till sql "SELECT * FROM silver.quarantine" --json
      till sql "SELECT count(*) FROM silver.order_events" --at -5m
      till sql "SELECT item_added.sku, sum(item_added.quantity) FROM silver.cart_events GROUP BY 1 ORDER BY 2 DESC"
    """
    if as_csv and as_json:
        raise click.UsageError("--csv and --json exclude each other.")
    with wrong_query_as_bad_input():
        from analytics.lake import LakeFiles
        from analytics.query.ask import ask

        answer = ask(LakeFiles(Settings.load()), sys.stdin.read() if query == "-" else query, at)
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
def wrong_query_as_bad_input() -> Iterator[None]:
    try:
        from analytics.query.parse import WrongQuery
    except ModuleNotFoundError as missing:
        raise OperatorError(
            f"{missing.name} is not installed here.", "A service image does not contain the lake."
        ) from missing
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
    """Prints an array, row by row as the rows arrive."""
    click.echo("[", nl=False)
    for n, row in enumerate(islice(answer.rows, limit or None)):
        click.echo(("," if n else "") + "\n  " + row_as_json(answer.columns, answer.types, row), nl=False)
    click.echo("\n]")


def _print_csv(answer: "Answer", limit: int | None) -> None:
    lines = csv.writer(sys.stdout, lineterminator="\n")
    lines.writerow(answer.columns)
    for row in islice(answer.rows, limit or None):
        lines.writerow(map(csv_field, row, answer.types))
