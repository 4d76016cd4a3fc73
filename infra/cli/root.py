"""The root of the command line: which commands there are, in the groups that `till --help` shows.

A command's module is imported when the command is called, and its one-line summary is written here, so that
`till --help` imports nothing but click.
"""

import gc
import sys
from importlib import import_module
from typing import NamedTuple

import click

from shared.errors import OperatorError


class Entry(NamedTuple):
    place: str
    """Module below `infra.cli.commands`, and the name of the command in it."""
    summary: str


SECTIONS: dict[str, dict[str, Entry]] = {
    "Run the shop": {
        "install": Entry("shop.machine:install", "Install what is missing: Java and the locked jars."),
        "doctor": Entry("shop.machine:doctor", "Show what this machine has, and what is missing."),
        "up": Entry("shop.stack:up", "Start Kafka, the registry, PostgreSQL and the shop."),
        "demo": Entry("shop.demo:demo", "Let shoppers buy, run the lake, show what happened."),
        "status": Entry("shop.stack:status", "Show what runs, and whether it works."),
        "logs": Entry("shop.stack:logs", "Print the log of one process, or of all."),
        "down": Entry("shop.stack:down", "Stop everything. The data stays."),
        "simulate": Entry("shop.simulate:simulate", "Let simulated shoppers buy, then audit the books."),
        "seed": Entry("shop.seed:seed", "Put the opening assortment on the shelves."),
        "token": Entry("shop.token:token", "Print a bearer token for the shop API."),
        "settings": Entry("shop.settings:settings", "Print every setting with its value and source."),
    },
    "Look back": {
        "history": Entry("look_back.history:history", "List a stream's events and what each one changed."),
        "state": Entry("look_back.state:state", "Show a stream as it is, or as it was."),
        "diff": Entry("look_back.diff:diff", "Show what changed in a stream, and by which events."),
        "why": Entry("look_back.why:why", "Show the chain of causes back to the first request."),
        "at": Entry("look_back.at:at", "Show the whole shop as it was at a moment."),
    },
    "Check and repair": {
        "verify": Entry("repair.verify:verify", "Check that store, topics, views, ledger and lake agree."),
        "rebuild": Entry("repair.rebuild:rebuild", "Rebuild a view from its events, compare it and swap it."),
        "replay": Entry("repair.replay:replay", "Print a slice of a topic, or copy it to a new topic."),
        "dlq": Entry("repair.dlq:dlq", "List, inspect, retry and drop dead letters."),
        "erase": Entry("repair.erase:erase", "Forget a customer: delete the key to personal data."),
    },
    "The contract": {
        "topics": Entry("contract.topics:topics", "Compare the declared topics with the cluster's."),
        "schemas": Entry("contract.schemas:schemas", "List, check, release and register event schemas."),
    },
    "The lake": {
        "lake": Entry("lake.group:lake", "Fill, verify, compact and inspect the lake's tables."),
        "sql": Entry("lake.sql:sql", "Query the lake in SQL, now or as it was."),
    },
    "What if": {
        "whatif": Entry("whatif.group:whatif", "Run history under other rules. Nothing is changed."),
    },
    "Measure": {
        "bench": Entry("measure.bench:bench", "Measure speed, each figure next to its reference."),
    },
}
COMMANDS = {name: entry for section in SECTIONS.values() for name, entry in section.items()}


class LazyGroup(click.Group):
    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002 - click's signature
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:  # noqa: ARG002
        if cmd_name not in COMMANDS:
            return None
        module, _, name = COMMANDS[cmd_name].place.partition(":")
        command: click.Command = getattr(import_module(f"infra.cli.commands.{module}"), name)
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:  # noqa: ARG002
        width = max(map(len, COMMANDS))
        for title, section in SECTIONS.items():
            with formatter.section(title):
                formatter.write_dl([(name.ljust(width), entry.summary) for name, entry in section.items()])


@click.group(cls=LazyGroup, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(package_name="till-roll", prog_name="till")
def till() -> None:
    """Run, inspect and rewind a shop that remembers nothing but its events.

    \b
    Start here:
      till up             start the shop
      till demo           let shoppers buy, and see what happened
      till COMMAND -h     options and examples of a command

    In a clone, write ./till instead of till.
    """


def main() -> None:
    try:
        till()
    except OperatorError as error:
        from infra.cli.render.errors import report

        report(error)
        raise SystemExit(1) from None
    finally:
        if "duckdb" not in sys.modules:  # DuckDB would report the frozen objects as leaks
            gc.freeze()  # skips the last garbage collection, which costs a short command a fifth of its time
