"""`till bench`: measures speed next to a reference. A benchmark is a module of tests/bench with `run(settings)`."""

import asyncio
from collections.abc import Iterator
from importlib import import_module
from typing import Any

import click
import uvloop

from infra.cli.render.console import err, json_option
from infra.settings import Settings
from shared.errors import OperatorError

ABOUT = {
    "up": "Starting and stopping the local stack, and its memory.",
    "order": "Orders from checkout to capture: latency, rate and an audit.",
    "append": "Appending to the event store.",
    "commands": "Handling commands: load, fold, decide, append.",
    "replay": "Replaying, past states, verify and rebuild (takes minutes).",
    "relay": "Relaying the outbox to Kafka: throughput and latency.",
    "http": "Answering requests of the shop API.",
    "alerts": "Sending a fraud alert after a payment: latency (takes minutes).",
    "lake": "Ingesting from Kafka to bronze and silver (takes half an hour).",
    "growth": "Appending to 5 million events, and memory (takes minutes).",
}
HELP = """Measure {about}

\b
Examples:
  till bench {name}
  till bench {name} --json
"""
# These start stacks of their own; all others share one that is started for them.
WITHOUT_STACK = {"up"}


class BenchGroup(click.Group):
    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002
        return list(ABOUT)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:  # noqa: ARG002
        if cmd_name not in ABOUT:
            return None

        about = ABOUT[cmd_name]
        own_help = HELP.format(about=about[0].lower() + about[1:], name=cmd_name)

        @click.command(cmd_name, short_help=about, help=own_help)
        @json_option
        @click.pass_context
        def command(context: click.Context, as_json: bool) -> None:
            context.exit(0 if _run([cmd_name], as_json) else 1)

        return command


@click.group(cls=BenchGroup, invoke_without_command=True)
@json_option
@click.pass_context
def bench(context: click.Context, as_json: bool) -> None:
    """Run all benchmarks, or one. Exit code 1 when a figure misses its limit.

    They run on servers of their own, so a running shop is not touched. Each figure is printed next to a reference that
    is measured in the same run.

    \b
    Examples:
      till bench              all of them
      till bench append       one of them
    """
    if not context.invoked_subcommand:
        context.exit(0 if _run(list(ABOUT), as_json) else 1)


def _run(names: list[str], as_json: bool) -> bool:
    """Shows each figure as soon as it is measured, or one JSON document at the end."""
    show = _module("figures").show
    if as_json:
        return bool(show([figure for figures in _measured(names) for figure in figures], as_json))
    held = [show(figures, as_json) for figures in _measured(names)]
    return all(held)


def _measured(names: list[str]) -> Iterator[list[Any]]:
    for name in names:
        if name in WITHOUT_STACK:
            yield _measure(name, Settings.load())
    if on_a_stack := [name for name in names if name not in WITHOUT_STACK]:
        from infra.local.stack import up
        from infra.local.throwaway import settings_of, throwaway

        with throwaway() as environment:
            running = asyncio.run(up(settings_of(environment), servers_only=True)).settings
            for name in on_a_stack:
                yield _measure(name, running)


def _measure(name: str, settings: Settings) -> list[Any]:
    err.print(f"Measuring {name}: {ABOUT[name]}", style="dim")
    figures: list[Any] = uvloop.run(_module(name).run(settings))
    return figures


def _module(name: str) -> Any:
    try:
        return import_module(f"tests.bench.{name}")
    except ModuleNotFoundError as missing:
        raise OperatorError(
            f"The benchmarks are part of the project's tests, and {missing.name} is not installed.",
            "Run this in a clone.",
        ) from missing
