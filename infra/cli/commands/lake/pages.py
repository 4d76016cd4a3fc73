"""`till lake tables`, `report` and `questions`: pages about the lake that need no Spark."""

import asyncio
from dataclasses import asdict
from datetime import UTC, datetime
from pathlib import Path
from textwrap import fill
from typing import TYPE_CHECKING, Any

import click
from rich.text import Text

from analytics.settings import LakeSettings
from infra.cli.commands.lake.sql import wrong_query_as_bad_input
from infra.cli.render.console import err, json_option, out, print_json
from infra.cli.render.moments import ago, span
from infra.cli.render.tables import markdown, print_rows
from infra.cli.render.values import size
from infra.settings import Settings
from shared.errors import OperatorError

if TYPE_CHECKING:
    from analytics.query.freshness import Freshness, Lag

PAGE = """\
# Ten questions to the lake

Written by `till lake questions --markdown`, from the lake of a shop that had been open for a minute:

    till up
    till simulate --shoppers 12 --seconds 60 --seed 7 --fraud 0.1
    till lake run
    till lake questions

The seed fixes what the shoppers want, not how fast your machine serves them: your figures will be near these, not the
same. Run a query with `till sql "..."`, which needs no Spark. Add `--at -10m` to query the lake as it was ten minutes
ago, `--json` or `--csv` to use the answer elsewhere. [tables.md](tables.md) describes the tables.
"""


@click.command()
@json_option
def tables(as_json: bool) -> None:
    """List the tables: rows, size, versions, and lag behind Kafka.

    Works without Spark. If Kafka is down, the lag is not shown.

    \b
    Examples:
      till lake tables
      till lake tables --json
    """
    fresh = _freshness(Settings.load())
    if as_json:
        print_json({"kafka": fresh.kafka, "tables": [asdict(table) for table in fresh.tables]})
        return
    columns = {"table": "VARCHAR", "rows": "INTEGER", "size": "DOUBLE", "files": "INTEGER", "version": "INTEGER"}
    columns |= {"last commit": "VARCHAR", "behind Kafka": "VARCHAR"}
    rows = [
        (
            t.name,
            f"{t.rows:,}",
            size(t.bytes),
            f"{t.files:,}",
            f"{t.version:,}",
            ago(t.committed),
            _behind(t.behind),
        )
        for t in fresh.tables
    ]
    print_rows(list(columns), list(columns.values()), rows)
    if fresh.kafka:
        err.print(Text(f"{fresh.kafka}. How far the tables are behind it is not known.", "yellow"))


@click.command()
@click.option(
    "-o",
    "--output",
    type=click.Path(dir_okay=False, path_type=Path),
    help="File to write.  [default: report.html in TILL_HOME]",
)
@json_option
def report(output: Path | None, as_json: bool) -> None:
    """Write a report with plots, as one HTML page.

    It shows sales, the funnel, products, fraud and freshness, and opens without a network.

    \b
    Examples:
      till lake report
      till lake report -o monday.html
    """
    from analytics.lake import LakeFiles
    from analytics.report.page import render_report

    settings = Settings.load()
    written = render_report(LakeFiles(settings), _freshness(settings), datetime.now(UTC), settings.currency)
    file = (output or settings.home / "report.html").absolute()
    try:
        file.write_text(written, encoding="utf-8")
    except OSError as error:
        raise OperatorError(
            f"{file} cannot be written: {error.strerror}.", "Choose another file with --output."
        ) from error
    if as_json:
        print_json({"file": str(file), "bytes": len(written.encode())})
    else:
        out.print(f"Wrote {file}", soft_wrap=True)


@click.command()
@click.option("--markdown", "as_markdown", is_flag=True, help="Print the answers as a page, docs/questions.md.")
@json_option
def questions(as_markdown: bool, as_json: bool) -> None:
    """Answer ten questions of an analyst, each with its SQL.

    \b
    Examples:
      till lake questions
      till lake questions --markdown > docs/questions.md
    """
    from analytics.lake import LakeFiles
    from analytics.query.ask import ask
    from analytics.report.questions import QUESTIONS

    lake = LakeFiles(Settings.load())
    documents: list[dict[str, Any]] = []
    if as_markdown:
        click.echo(PAGE)
    for n, question in enumerate(QUESTIONS, 1):
        with wrong_query_as_bad_input():
            answer = ask(lake, question.sql)
            rows = list(answer.rows)
        if as_json:
            answers = [dict(zip(answer.columns, row, strict=True)) for row in rows]
            documents.append({"question": question.title, "sql": question.sql, "answer": answers})
        elif as_markdown:
            remark = fill(question.remark, 118)
            click.echo(f"## {n}. {question.title}\n\n{remark}\n\n```sql\n{question.sql}\n```\n")
            click.echo("\n".join(markdown(answer.columns, answer.types, rows)) + "\n")
        else:
            out.print(Text(f"\n{n}. {question.title}", "bold"))
            out.print(Text(question.sql, "dim"))
            out.print()
            print_rows(answer.columns, answer.types, rows)
    if as_json:
        print_json(documents)


def _freshness(settings: Settings) -> "Freshness":
    from analytics.lake import LakeFiles
    from analytics.query.freshness import measure_freshness

    lake = LakeFiles(settings)
    lake.require_tables()
    return asyncio.run(measure_freshness(lake))


def lake_line(settings: LakeSettings) -> str:
    """Tells for `till status` how far silver and gold are behind Kafka; empty if the lake's packages are missing."""
    try:
        from analytics.lake import LakeFiles
        from analytics.query.freshness import greatest_lag, measure_freshness
    except ModuleNotFoundError:
        return ""
    fresh = asyncio.run(measure_freshness(LakeFiles(settings)))
    if not fresh.tables:
        return "none yet; fill it with: till lake run"
    behind = {layer: greatest_lag(fresh.tables, layer) for layer in ("silver", "gold")}
    lags = [f"{layer} {_behind(it) or 'not known'}" for layer, it in behind.items() if it or layer == "silver"]
    newest = max(table.committed for table in fresh.tables)
    return f"behind Kafka: {', '.join(lags)}; last commit {ago(newest)}"


def _behind(behind: "Lag | None") -> str:
    if behind is None:
        return ""
    return f"{behind.events:,} events, {span(behind.seconds)}" if behind.events else "up to date"
