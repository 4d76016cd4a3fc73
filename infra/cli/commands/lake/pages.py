"""What `till lake` shows without Spark: the tables and how fresh they are, the report, the ten questions."""

import asyncio
from dataclasses import asdict
from datetime import UTC, datetime
from pathlib import Path
from textwrap import fill
from typing import TYPE_CHECKING, Any

import click
from rich.text import Text

from infra.cli.cells import markdown, print_rows
from infra.cli.console import as_json, err, out, print_json
from infra.cli.moments import ago, span
from infra.cli.sql import said_in_a_line
from shared.errors import OperatorError
from shared.settings import Settings

if TYPE_CHECKING:
    from analytics.reading.freshness import Behind, Freshness

KB, MB = 1_000, 1_000_000
PAGE = """\
# Ten questions to the lake

Written by `till lake questions --markdown`, from the lake of a shop that had just been open for a minute:

    till up
    till simulate --shoppers 12 --seconds 60 --seed 7 --fraud 0.1
    till lake run
    till lake questions

The seed fixes what the shoppers want, not how fast your machine serves them: your figures will be near these, not the
same. Each question is asked with `till sql "..."`, which needs no Spark; add `--at -10m` to ask the lake as it was ten
minutes ago, `--json` or `--csv` to go on with the answer elsewhere. The tables are told of in [lake.md](lake.md).
"""


@click.command()
@as_json
def tables(as_json: bool) -> None:
    """The tables: rows, size, versions, and how far each is behind Kafka, in events and in time.

    Works while Spark, and while Kafka is down; then only the tables are shown.

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
            _size(t.bytes),
            f"{t.files:,}",
            f"{t.version:,}",
            ago(t.committed),
            _behind(t.behind),
        )
        for t in fresh.tables
    ]
    print_rows(list(columns), list(columns.values()), rows)
    if fresh.kafka:
        err.print(Text(f"{fresh.kafka}. How far behind it the tables are is not known.", "yellow"))


@click.command()
@click.option(
    "-o", "--output", type=click.Path(dir_okay=False, path_type=Path), help="[default: report.html in the home]"
)
@as_json
def report(output: Path | None, as_json: bool) -> None:
    """Write one HTML page with plots: sales, funnel, products, fraud, freshness. It opens without a network.

    \b
    Examples:
      till lake report
      till lake report -o monday.html
    """
    from analytics.report.page import page

    settings = Settings.load()
    written = page(settings, _freshness(settings), datetime.now(UTC))
    file = (output or settings.home / "report.html").absolute()
    try:
        file.write_text(written, encoding="utf-8")
    except OSError as error:
        raise OperatorError(f"{file} cannot be written: {error.strerror}.", "Name another with --output.") from error
    if as_json:
        print_json({"file": str(file), "bytes": len(written.encode())})
    else:
        out.print(f"Wrote {file}", soft_wrap=True)


@click.command()
@click.option("--markdown", "as_markdown", is_flag=True, help="Print the page docs/questions.md.")
@as_json
def questions(as_markdown: bool, as_json: bool) -> None:
    """Ten questions of an analyst, with their SQL, answered by this lake.

    \b
    Examples:
      till lake questions
      till lake questions --markdown > docs/questions.md
    """
    from analytics.reading.asking import ask
    from analytics.report.questions import QUESTIONS

    settings = Settings.load()
    documents: list[dict[str, Any]] = []
    if as_markdown:
        click.echo(PAGE)
    for n, question in enumerate(QUESTIONS, 1):
        with said_in_a_line():
            answer = ask(settings, question.sql)
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
    from analytics.reading.freshness import freshness

    fresh = asyncio.run(freshness(settings))
    if not fresh.tables:
        raise OperatorError(f"There is no lake yet in {settings.lake}.", "It is made by: till lake run")
    return fresh


def lake_line(settings: Settings) -> str:
    """For `till status`: how far silver and gold are behind Kafka. Empty where nothing of a lake is installed."""
    try:
        from analytics.reading.freshness import freshness, furthest_behind
    except ModuleNotFoundError:
        return ""
    fresh = asyncio.run(freshness(settings))
    if not fresh.tables:
        return "none yet; it is made by: till lake run"
    behind = {layer: furthest_behind(fresh.tables, layer) for layer in ("silver", "gold")}
    told = [f"{layer} {_behind(it) or 'not known'}" for layer, it in behind.items() if it or layer == "silver"]
    newest = max(table.committed for table in fresh.tables)
    return f"behind Kafka: {', '.join(told)}; last commit {ago(newest)}"


def _size(bytes_: int) -> str:
    return f"{bytes_ / MB:,.1f} MB" if bytes_ >= MB else f"{bytes_ / KB:,.0f} kB"


def _behind(behind: "Behind | None") -> str:
    if behind is None:
        return ""
    return f"{behind.events:,} events, {span(behind.seconds)}" if behind.events else "up to date"
