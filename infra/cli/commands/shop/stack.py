"""`till up`, `down`, `status` and `logs`: the local stack.

The modules that do the work are imported when they are called, because importing their clients is slow.
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

from infra.cli.commands.lake.pages import lake_line
from infra.cli.render.console import err, json_option, out, print_json
from infra.cli.render.moments import span
from infra.cli.render.program import callable_here, program
from infra.cli.render.progress import progress
from infra.cli.render.values import size
from infra.settings import Settings
from shared.settings import HOST

if TYPE_CHECKING:
    from infra.local.flow import Flow
    from infra.local.stack import Up
    from infra.local.status import Health


@click.command()
@click.option(
    "--brokers", type=click.Choice(["1", "3"]), help="Brokers in the Kafka cluster. Fixed once TILL_HOME has data."
)
@click.option("--servers-only", is_flag=True, help="Start Kafka, the registry and PostgreSQL, but not the shop.")
@click.option("--split/--no-split", default=None, help="Run the workers of each service in their own process.")
@click.option(
    "--only", multiple=True, metavar="NAME", help="Start only this process and what it depends on. Repeatable."
)
@json_option
def up(brokers: str | None, servers_only: bool, split: bool | None, only: tuple[str, ...], as_json: bool) -> None:
    """Start what is not running, and wait until everything works.

    \b
    Examples:
      till up
      till up --brokers 3        replication 3, min.insync.replicas 2, on one machine
      till up --split            relay and consumers of each service in their own process
      till up --only registry    the registry, and PostgreSQL, which it needs
    """
    from infra.local.stack import up as bring_up

    chosen = {"kafka_brokers": int(brokers) if brokers else None, "split": split}
    settings = Settings.load(**{name: value for name, value in chosen.items() if value is not None})
    with progress(quiet=as_json) as shown:
        result = asyncio.run(bring_up(settings, only, servers_only, shown.note, _print_that_it_waits))
    if as_json:
        drift = [asdict(difference) for difference in result.drift]
        print_json({"processes": [asdict(process) for process in result.processes], "drift": drift})
    else:
        _print_addresses(result)


@click.command()
@json_option
def down(as_json: bool) -> None:
    """Stop everything, in order. The data stays in TILL_HOME.

    \b
    Examples:
      till down
      till down --json          which processes were stopped
    """
    from infra.local.stop import down as bring_down

    stopped = [process.name for process in asyncio.run(bring_down(Settings.load().home))]
    if as_json:
        print_json({"stopped": stopped})
    else:
        out.print(f"Stopped {', '.join(stopped)}." if stopped else "Nothing was running.")


@click.command()
@json_option
@click.pass_context
def status(context: click.Context, as_json: bool) -> None:
    """Show what runs, and whether it works. Exit code 1 when something is down.

    Every process is tested with real work. Below the processes: how many messages wait in each outbox, how far each
    consumer is behind, and how fresh the lake is.

    \b
    Examples:
      till status
      till status --json
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
            out.print(Text.assemble("\n", ("lake  ", "dim"), callable_here(lake)))
    context.exit(0 if healthy else 1)


@click.command()
@click.argument("name", required=False)
@click.option("-f", "--follow", "following", is_flag=True, help="Keep printing new lines.")
@click.option(
    "-n", "--lines", default=50, show_default=True, type=click.IntRange(0), help="How many of the last lines to print."
)
@json_option
def logs(name: str | None, following: bool, lines: int, as_json: bool) -> None:
    """Print the log of one process, or of all. TILL_HOME/logs also has the logs of the previous run.

    \b
    Examples:
      till logs                 the last lines of every log
      till logs shop -f         the shop's log, and every new line
      till logs kafka -n 500
    """
    from infra.local.processes.logs import log_files, tail

    files = log_files(Settings.load().home)
    if name and name not in files:
        raise click.UsageError(f"There is no log of {name}. There are logs of: {', '.join(files) or 'nothing yet'}.")
    wanted = {name: files[name]} if name else files
    with suppress(KeyboardInterrupt):
        for process, line in tail(wanted, lines, following):
            if as_json:
                click.echo(orjson.dumps({"process": process, "line": line}))
            else:
                click.echo(line if name else f"{process:9} {line}")


def _print_that_it_waits() -> None:
    err.print(Text("Another `till up` or `till down` is running here. Waiting for it."))


def _print_addresses(result: "Up") -> None:
    table = Table(box=None, show_header=False)
    for process in result.processes:
        table.add_row(Text("✓", "green"), process.name, Text(process.version, "dim"), process.address)
    out.print(table)
    for difference in result.drift:
        err.print(Text("topic drift: ", "yellow").append(str(difference), "default"))
    if result.drift:
        err.print(Text(callable_here("  → Nothing was altered. Compare with: till topics")))

    if any(process.name == "shop" for process in result.processes):
        shop = f"http://{HOST}:{result.settings.shop_port}"
        out.print(f"\nThe shop is at {shop}, its API can be tried at {shop}/docs.")
        out.print(f"To see what runs: {program()} status. All commands: {program()} --help")


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
            size(process.memory) if process.memory else "",
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
    return span((datetime.now(UTC) - datetime.fromisoformat(since)).total_seconds())
