"""`till whatif`: runs history under other rules. Nothing is changed."""

import click

from infra.cli.commands.whatif.decisions import decisions
from infra.cli.commands.whatif.fraud import fraud


@click.group()
def whatif() -> None:
    """Run history under other rules, and compare. Nothing is changed.

    \b
    Examples:
      till whatif fraud --rules stricter.toml                 all of history
      till whatif fraud --rules stricter.toml --from -1d      payments since yesterday
      till whatif decisions                                   today's code on yesterday's commands
    """


whatif.add_command(fraud)
whatif.add_command(decisions)
