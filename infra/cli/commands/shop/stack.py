"""`till up`, `down`, `status` and `logs`: the local stack.

What does the work is imported when called: with its clients it takes longer than all of `till --help`.
"""

import asyncio
from contextlib import suppress
from dataclasses import asdict
from datetime import UTC, datetime
from typing import TYPE_CHECKING

import click
import orjson
from rich.table import Table
from rich.text import Text

from infra.cli.console import as_json, err, out, print_json
from infra.cli.lake_pages import lake_line
from infra.cli.progress import progress
from shared.settings import Settings

if TYPE_CHECKING:
    from infra.local.flow import Flow
    from infra.local.stack import Up
    from infra.local.status import Health

MB = 1_000_000


@click.command()
@click.option("--brokers", type=click.Choice(["1", "3"]), help="Nodes of the Kafka cluster, for a new home.")
@click.option("--servers-only", is_flag=True, help="Kafka, the registry and PostgreSQL, without the shop.")
@click.option("--split/--no-split", default=None, help="Workers of the services as processes of their own.")
@click.option("--only", multiple=True, metavar="NAME", help="This one and what it depends on. Repeatable.")
@as_json
def up(brokers: str | None, servers_only: bool, split: bool | None, only: tuple[str, ...], as_json: bool) -> None:
    """Start what is not running, and wait until all of it works.

    \b
    Examples:
      till up
      till up --brokers 3        replication 3, min.insync.replicas 2, on this one machine
      till up --split            relay and consumers of each service as a process of their own
      till up --only registry    with the PostgreSQL that it needs
    """
    from infra.local.stack import up as bring_up

    chosen = {"kafka_brokers": int(brokers) if brokers else None, "split": split}
    settings = Settings.load(**{name: value for name, value in chosen.items() if value is not None})
    with progress(quiet=as_json) as watch:
        result = asyncio.run(bring_up(settings, only, servers_only, watch, _say_that_it_waits))
    if as_json:
        drift = [asdict(difference) for difference in result.drift]
        print_json({"processes": [asdict(process) for process in result.processes], "drift": drift})
    else:
        _print_addresses(result)


@click.command()
@as_json
def down(as_json: bool) -> None:
    """Stop it all, in order. The data stays."""
    from infra.local.stop import down as bring_down

    stopped = [process.name for process in asyncio.run(bring_down(Settings.load().home))]
    if as_json:
        print_json({"stopped": stopped})
    else:
        out.print(f"Stopped {', '.join(stopped)}." if stopped else "Nothing was running.")


@click.command()
@as_json
@click.pass_context
def status(context: click.Context, as_json: bool) -> None:
    """What runs, and how it is: each is asked for real work. Exit code 1 when something is down.

    Below it, what waits in the outboxes, how many messages each consumer is behind, and how fresh the lake is.
    """
    from infra.local.flow import flows
    from infra.local.status import health_of_all

    settings = Settings.load()
    processes = asyncio.run(health_of_all(settings))
    flowing = asyncio.run(flows(settings)) if any(process.healthy for process in processes) else []
    lake = lake_line(settings)
    healthy = all(process.healthy for process in processes)
    if as_json:
        services = [asdict(flow) for flow in flowing]
        print_json(
            {"ok": healthy, "processes": [asdict(process) for process in processes], "services": services, "lake": lake}
        )
    else:
        _print_processes(processes)
        _print_flows(flowing)
        if lake:
            out.print(Text.assemble("\n", ("lake  ", "dim"), lake))
    context.exit(0 if healthy else 1)


@click.command()
@click.argument("name", required=False)
@click.option("-f", "--follow", "following", is_flag=True, help="Go on as more is written.")
@click.option("-n", "--lines", default=50, show_default=True, type=click.IntRange(0), help="Last lines of each.")
@as_json
def logs(name: str | None, following: bool, lines: int, as_json: bool) -> None:
    """The log of one process, or of all. That of the run before is beside it, in TILL_HOME/logs."""
    from infra.local.logs import log_files, tail

    files = log_files(Settings.load().home)
    if name and name not in files:
        raise click.UsageError(f"There is no log of {name}. There are: {', '.join(files) or 'none yet'}.")
    wanted = {name: files[name]} if name else files
    with suppress(KeyboardInterrupt):
        for process, line in tail(wanted, lines, following):
            if as_json:
                click.echo(orjson.dumps({"process": process, "line": line}))
            else:
                click.echo(line if name else f"{process:9} {line}")


def _say_that_it_waits() -> None:
    err.print(Text("Another `till up` or `till down` is at work here. Waiting for it."))


def _print_addresses(result: "Up") -> None:
    table = Table(box=None, show_header=False)
    for process in result.processes:
        table.add_row(Text("✓", "green"), process.name, Text(process.version, "dim"), process.address)
    out.print(table)
    for difference in result.drift:
        err.print(Text("topic drift: ", "yellow").append(str(difference), "default"))
    if result.drift:
        err.print(Text("  → Nothing was altered. Compare with: till topics"))


def _print_processes(processes: "list[Health]") -> None:
    table = Table("", "process", "version", "health", "memory", "since", "address", box=None, header_style="dim")
    table.columns[4].justify = "right"
    table.columns[6].overflow = "fold"
    for process in processes:
        table.add_row(
            Text("✓", "green") if process.healthy else Text("✗", "bold red"),
            process.name,
            process.version,
            "healthy" if process.healthy else Text(process.reason.partition(". Its log says")[0], "red"),
            f"{process.memory // MB} MB" if process.memory else "",
            _age(process.since),
            process.address,
        )
    out.print(table)
    for process in processes:
        if "\n" in process.reason:
            err.print(Text(f"\n{process.reason}"))


def _print_flows(flows: "list[Flow]") -> None:
    if not flows:
        return
    table = Table("service", "outbox", "consumers behind", "dead letters", box=None, header_style="dim")
    table.columns[1].justify = table.columns[3].justify = "right"
    for flow in flows:
        behind = ", ".join(f"{name.partition('.')[2]} {count}" for name, count in sorted(flow.lag.items()))
        table.add_row(flow.service, str(flow.outbox), behind or "none", str(flow.dead_letters))
    out.print()
    out.print(table)


def _age(since: str) -> str:
    if not since:
        return ""
    seconds = int((datetime.now(UTC) - datetime.fromisoformat(since)).total_seconds())
    for size, unit in ((86400, "d"), (3600, "h"), (60, "min")):
        if seconds >= size:
            return f"{seconds // size} {unit}"
    return f"{seconds} s"
