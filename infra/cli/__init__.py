"""`till`: the root of the command line. Commands are imported when they are called, so that it starts fast."""

import gc
import sys
from importlib import import_module

import click

from infra.cli.console import report
from shared.errors import OperatorError

COMMANDS = {
    "up": "infra.cli.stack:up",
    "down": "infra.cli.stack:down",
    "status": "infra.cli.stack:status",
    "logs": "infra.cli.stack:logs",
    "doctor": "infra.cli.doctor:doctor",
    "install": "infra.cli.doctor:install",
    "settings": "infra.cli.settings:settings",
    "history": "infra.cli.history:history",
    "state": "infra.cli.state:state",
    "diff": "infra.cli.diff:diff",
    "why": "infra.cli.why:why",
    "at": "infra.cli.at:at",
    "verify": "infra.cli.verify:verify",
    "rebuild": "infra.cli.rebuild:rebuild",
    "replay": "infra.cli.replay:replay",
    "whatif": "infra.cli.whatif:whatif",
    "topics": "infra.cli.topics:topics",
    "schemas": "infra.cli.schemas:schemas",
    "dlq": "infra.cli.dlq:dlq",
    "erase": "infra.cli.erase:erase",
    "token": "infra.cli.token:token",
    "seed": "infra.cli.seed:seed",
    "simulate": "infra.cli.simulate:simulate",
    "demo": "infra.cli.demo:demo",
    "lake": "infra.cli.lake:lake",
    "sql": "infra.cli.sql:sql",
    "bench": "infra.cli.bench:bench",
}


class LazyGroup(click.Group):
    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002 - click's signature
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:  # noqa: ARG002
        if cmd_name not in COMMANDS:
            return None
        module, _, name = COMMANDS[cmd_name].partition(":")
        command: click.Command = getattr(import_module(module), name)
        return command


@click.group(cls=LazyGroup, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(package_name="till-roll", prog_name="till")
def till() -> None:
    """Run, inspect and rewind the shop whose only memory is its till roll.

    \b
    Examples:
      till up                 start Kafka, the registry, PostgreSQL and the shop
      till status             what runs, and how it is
      till doctor             what this machine has, and what is missing
    """


def main() -> None:
    try:
        till()
    except OperatorError as error:
        report(error)
        raise SystemExit(1) from None
    finally:
        if "duckdb" not in sys.modules:  # which would take it for a leak
            gc.freeze()  # else all that was imported is searched for circles: a fifth of the time of a short command
