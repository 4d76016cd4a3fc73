"""`till simulate`: shoppers in the running shop, and the books checked after them."""

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from time import monotonic
from typing import TYPE_CHECKING

import click
from rich.live import Live
from rich.table import Table
from rich.text import Text

from infra.cli.console import as_json as json_option
from infra.cli.console import err, out, print_json
from shared.money import Money
from shared.settings import Settings

if TYPE_CHECKING:
    from infra.shoppers.ledger import Ledger
    from infra.shoppers.summary import Latency, Summary


@click.command()
@click.option("--shoppers", default=10, show_default=True, type=click.IntRange(1, 1000), help="How many at once.")
@click.option("--seconds", default=15.0, show_default=True, type=click.FloatRange(1, 3600), help="For how long.")
@click.option("--seed", default=1, show_default=True, help="The same seed, the same choices.")
@click.option(
    "--fraud", default=0.02, show_default=True, type=click.FloatRange(0, 1), help="Share of visits that mean no good."
)
@click.option(
    "--patience", default=60.0, show_default=True, type=click.FloatRange(0, 3600), help="Seconds the last orders have."
)
@json_option
@click.pass_context
def simulate(
    context: click.Context,
    shoppers: int,
    seconds: float,
    seed: int,
    fraud: float,
    patience: float,
    as_json: bool,
) -> None:
    """Let shoppers loose on the running shop, then check its books. Exit code 1 when they do not balance.

    They browse, fill carts, change their mind, leave, buy, get declined, cancel, and some try fraud. What each was
    answered is kept in TILL_HOME/simulations. The books are of all who shop meanwhile: be the only one.

    \b
    Examples:
      till simulate --shoppers 20 --seconds 30
      till simulate --fraud 0.3 --seed 7      hard times for the risk check
    """
    from infra.shoppers.ledger import written_to
    from infra.shoppers.simulation import Plan
    from infra.shoppers.simulation import simulate as run
    from infra.shoppers.summary import summarize

    settings, plan = Settings.load(), Plan(shoppers, seconds, seed, fraud, patience)
    file = new_file(settings)
    with written_to(file) as ledger, progress(ledger, seconds, quiet=as_json):
        audit = asyncio.run(run(settings, plan, ledger))
    summary = summarize(ledger, audit)
    if as_json:
        print_json(summary.document() | {"ledger": str(file)})
    else:
        show(summary)
        out.print(Text(f"What each shopper was answered: {file}", "dim"))
    context.exit(1 if summary.violations else 0)


def new_file(settings: Settings) -> Path:
    return settings.home / "simulations" / f"{datetime.now(UTC):%Y%m%dT%H%M%S.%f}.jsonl"


@contextmanager
def progress(ledger: "Ledger", seconds: float, quiet: bool) -> Iterator[None]:
    """One line, on a terminal only."""
    began = monotonic()

    def line() -> Text:
        elapsed = monotonic() - began
        orders = len({checkout.order_id for checkout in ledger.checkouts})
        figures = f"{len(ledger.answers)} requests · {ledger.tally['POST /v1/carts']} carts · {orders} orders"
        phase = f"{elapsed:.0f} of {seconds:.0f} s" if elapsed < seconds else "closed; waiting for the last orders"
        return Text(f"{phase} · {sum(ledger.visits.values())} visits · {figures}")

    if quiet or not err.is_terminal:
        yield
    else:
        with Live(get_renderable=line, console=err, refresh_per_second=8, transient=True):
            yield


def show(summary: "Summary") -> None:
    out.print(_counts("visits", summary.visits))
    orders = Text(f"{summary.carts} carts, {summary.checkouts} checked out", "dim")
    out.print(_counts("orders", summary.orders), orders)
    if summary.problems:
        out.print(_counts("answered with a problem", summary.problems))
    out.print(_latencies(summary))
    show_books(summary)


def show_books(summary: "Summary") -> None:
    table = Table("", "confirmed orders", "captured", "refunded", "kept", box=None, header_style="dim")
    for column in table.columns[1:]:
        column.justify = "right"
    for currency, sums in summary.money.items():
        amounts = [sums["confirmed"], sums["captured"], sums["refunded"], sums["captured"] - sums["refunded"]]
        table.add_row(currency, *(str(Money(amount, currency)) for amount in amounts))
    out.print(table)
    if not summary.violations:
        out.print(Text("✓ The books balance: orders, stock and the provider's ledger agree.", "green"))
        return
    for violation in summary.violations:
        out.print(Text("✗ ", "bold red").append(str(violation), "default"))
    err.print(Text("  → The books are of all who shopped meanwhile. If nobody else did, the shop is wrong."))


def _counts(title: str, counts: dict[str, int]) -> Table:
    table = Table(title, "", box=None, header_style="bold")
    table.columns[1].justify = "right"
    for name, count in counts.items():
        table.add_row(name, str(count))
    return table


def _latencies(summary: "Summary") -> Table:
    table = Table("answers", "count", "p50 ms", "p99 ms", box=None, header_style="bold")
    for column in table.columns[1:]:
        column.justify = "right"

    def row(name: str, latency: "Latency") -> None:
        table.add_row(name, str(latency.count), f"{latency.p50:.1f}", f"{latency.p99:.1f}")

    for call, latency in summary.requests.items():
        row(call, latency)
    if summary.decided:
        row("checkout to decided", summary.decided)
    return table
