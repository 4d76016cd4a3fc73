"""`till bench`: figures beside their references. A bench is a module of tests/bench with `run(settings)`."""

import asyncio
from collections.abc import Iterator
from importlib import import_module
from typing import Any

import click
import uvloop

from infra.cli.console import as_json, err
from shared.errors import OperatorError
from shared.settings import Settings

ABOUT = {
    "up": "Start and stop of the local stack, and its memory.",
    "order": "Whole orders, from checkout to money taken: latency, rate and the books afterwards.",
    "append": "Appends to the event store.",
    "commands": "Commands handled: load, fold, decide, append.",
    "replay": "Streams replayed, states of the past, a shop verified, a view rebuilt (takes minutes).",
    "relay": "The outbox relayed to Kafka: throughput and latency.",
    "http": "Requests answered by the shop API.",
    "alerts": "From a payment in Kafka to the fraud alert about it (takes minutes).",
    "lake": "Kafka to bronze and silver: throughput, freshness, growth to 5 million events (takes half an hour).",
    "growth": "Appends and memory as the store grows to 5 million events (takes minutes).",
}
# Measures stacks of its own; the others share one that is started for them.
WITHOUT_STACK = {"up"}


class BenchGroup(click.Group):
    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002
        return list(ABOUT)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:  # noqa: ARG002
        if cmd_name not in ABOUT:
            return None

        @click.command(cmd_name, help=ABOUT[cmd_name])
        @as_json
        @click.pass_context
        def command(context: click.Context, as_json: bool) -> None:
            context.exit(0 if _run([cmd_name], as_json) else 1)

        return command


@click.group(cls=BenchGroup, invoke_without_command=True)
@as_json
@click.pass_context
def bench(context: click.Context, as_json: bool) -> None:
    """Measure all of it, or one. Exit code 1 when a limit is missed."""
    if not context.invoked_subcommand:
        context.exit(0 if _run(list(ABOUT), as_json) else 1)


def _run(names: list[str], as_json: bool) -> bool:
    """For people, each as soon as it is measured; for machines, one document at the end."""
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
            f"The benches are among the project's tests, and {missing.name} is not here.", "Run this in a clone."
        ) from missing
