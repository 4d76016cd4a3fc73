"""`till lake alerts`: judges payments and sends fraud alerts, without writing tables."""

from typing import TYPE_CHECKING

import click

from infra.cli.commands.lake.spark import alone, open_lake, require_kafka
from infra.cli.commands.lake.stream import stop_signal
from infra.cli.render.console import json_option, out, print_json
from infra.cli.render.progress import progress
from infra.settings import Settings

if TYPE_CHECKING:
    from analytics.fraud.stream import AlertStream


@click.command()
@click.option("--once", is_flag=True, help="Judge the payments that are there now, then stop.")
@json_option
def alerts(once: bool, as_json: bool) -> None:
    """Judge payments and send fraud alerts, until Ctrl-C.

    Payments are read straight from Kafka. Alerts go to the topic fraud.alerts, which the payment service consumes. The
    rules are in analytics/fraud/rules.toml. `till lake stream` includes this.

    \b
    Examples:
      till lake alerts
      till lake alerts --once
    """
    from analytics.fraud.stream import AlertStream

    settings = Settings.load()
    require_kafka(settings)
    with alone(settings), progress(quiet=as_json) as shown, open_lake(settings, shown.note) as lake:
        stream = AlertStream(lake)
        shown.note("alerts", "judging payments")
        if once:
            stream.judge_available()
        else:
            _follow(stream)
        shown.note("alerts", f"done: {stream.sent:,} sent")
    if as_json:
        print_json({"sent": stream.sent})
    else:
        out.print(f"{stream.sent:,} alerts sent.")


def _follow(stream: "AlertStream") -> None:
    from analytics.pipeline import BackgroundAlerts

    with stop_signal() as stop:
        background = BackgroundAlerts(stream)
        while not stop.wait(0.2) and not background.failure:
            pass
        background.stop()
    if background.failure:
        raise background.failure
