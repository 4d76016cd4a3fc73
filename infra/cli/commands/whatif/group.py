"""`till whatif`: history under other rules. Nothing is changed anywhere."""

import click

from infra.cli.whatif_decisions import decisions
from infra.cli.whatif_fraud import fraud


@click.group()
def whatif() -> None:
    """What would have been, had other rules been in force. Nothing is changed anywhere.

    \b
    Examples:
      till whatif fraud --rules stricter.toml                 all of history
      till whatif fraud --rules stricter.toml --from -1d      what was asked for since yesterday
      till whatif decisions                                   today's code on yesterday's commands
    """


whatif.add_command(fraud)
whatif.add_command(decisions)
