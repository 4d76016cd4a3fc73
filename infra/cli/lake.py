"""`till lake`: from Kafka to tables that can be asked, with Spark; and what can be seen of them, without."""

import click

from infra.cli.lake_alerts import alerts
from infra.cli.lake_care import optimize, retry
from infra.cli.lake_pages import questions, report, tables
from infra.cli.lake_stream import stream
from infra.cli.lake_work import batch, replay, run, verify


@click.group()
def lake() -> None:
    """The lake: bring it up to date, check it, and look into it. To ask it something: till sql.

    \b
    Examples:
      till lake run           all that is in Kafka, into all tables; then stop
      till lake stream        the same, and keep going
      till lake tables        how many rows, how fresh
      till lake report        a page with plots
      till lake verify        is what was streamed what a batch would have computed?
    """


for command in (run, stream, alerts, batch, replay, verify, optimize, retry, tables, report, questions):
    lake.add_command(command)
