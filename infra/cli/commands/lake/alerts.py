"""`till lake alerts`: the fast path of fraud alone, without tables."""

from typing import TYPE_CHECKING

import click

from infra.cli.console import as_json as json_option
from infra.cli.console import out, print_json
from infra.cli.lake_spark import alone
from infra.cli.lake_stream import Background, told_to_stop
from infra.cli.lake_work import opened, require_kafka
from infra.cli.progress import progress
from shared.settings import Settings

if TYPE_CHECKING:
    from analytics.fraud.stream import AlertStream


@click.command()
@click.option("--once", is_flag=True, help="Judge what is there by now, and stop.")
@json_option
def alerts(once: bool, as_json: bool) -> None:
    """Judge payments straight from Kafka and send fraud alerts, until Ctrl-C. `till lake stream` does this, and more.

    Alerts go to fraud.alerts, where the payment service hears them. What makes one is in analytics/fraud/rules.toml.

    \b
    Examples:
      till lake alerts
      till lake alerts --once
    """
    from analytics.fraud.stream import AlertStream

    settings = Settings.load()
    require_kafka(settings)
    with alone(settings), progress(quiet=as_json) as watch, opened(settings, watch) as spark:
        stream = AlertStream(spark, settings)
        watch("alerts", "judging payments")
        if once:
            stream.bring_up_to_date()
        else:
            _follow(stream)
        watch("alerts", f"done: {stream.sent:,} sent")
    if as_json:
        print_json({"sent": stream.sent})
    else:
        out.print(f"{stream.sent:,} alerts sent.")


def _follow(stream: "AlertStream") -> None:
    with told_to_stop() as stop:
        background = Background(stream)
        while not stop.wait(0.2) and not background.failure:
            pass
        background.stop()
    if background.failure:
        raise background.failure
