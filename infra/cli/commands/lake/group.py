"""`till lake`: brings events from Kafka into tables with Spark, and shows the tables without it."""

import click

from infra.cli.commands.lake.alerts import alerts
from infra.cli.commands.lake.maintenance import optimize, retry
from infra.cli.commands.lake.pages import questions, report, tables
from infra.cli.commands.lake.stream import stream
from infra.cli.commands.lake.work import batch, replay, run, verify


@click.group()
def lake() -> None:
    """Fill, verify, compact and inspect the lake's tables. To query them: till sql.

    \b
    Examples:
      till lake run           bring all tables up to date, then stop
      till lake stream        keep them up to date
      till lake tables        rows, size and freshness
      till lake report        a page with plots
      till lake verify        compare gold with a recomputation from bronze
    """


for command in (run, stream, alerts, batch, replay, verify, optimize, retry, tables, report, questions):
    lake.add_command(command)
