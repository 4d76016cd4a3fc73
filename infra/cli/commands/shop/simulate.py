"""`till simulate`: lets simulated shoppers buy in the running shop, then audits its books."""

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from time import monotonic
from typing import TYPE_CHECKING

import click
from rich.table import Table
from rich.text import Text

from infra.cli.render.console import err, json_option, out, print_json
from infra.cli.render.progress import progress
from infra.settings import Settings
from services.common.money import Money

if TYPE_CHECKING:
    from infra.simulation.audit.ledger import Ledger
    from infra.simulation.audit.summary import Latency, Summary


@click.command()
@click.option(
    "--shoppers", default=10, show_default=True, type=click.IntRange(1, 1000), help="Shoppers at the same time."
)
@click.option("--seconds", default=15.0, show_default=True, type=click.FloatRange(1, 3600), help="How long they shop.")
@click.option("--seed", default=1, show_default=True, help="The same seed makes the same choices.")
@click.option(
    "--fraud", default=0.02, show_default=True, type=click.FloatRange(0, 1), help="Share of fraudulent visits."
)
@click.option(
    "--patience",
    default=60.0,
    show_default=True,
    type=click.FloatRange(0, 3600),
    help="Seconds to wait for the last orders.",
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
    """Let simulated shoppers buy, then audit the books. Exit code 1 when they do not balance.

    Shoppers browse, fill carts, change their minds, leave, buy, get declined and cancel; some try fraud. Every answer
    they get is written to TILL_HOME/simulations. Nobody else should shop meanwhile: the audit would count their orders.

    \b
    Examples:
      till simulate --shoppers 20 --seconds 30
      till simulate --fraud 0.3 --seed 7      30 % of the visits are fraudulent
    """
    from infra.simulation.audit.ledger import create_ledger
    from infra.simulation.audit.summary import summarize
    from infra.simulation.shoppers.simulation import Plan
    from infra.simulation.shoppers.simulation import simulate as run

    settings, plan = Settings.load(), Plan(shoppers, seconds, seed, fraud, patience)
    file = new_file(settings)
    with create_ledger(file) as ledger, show_shoppers(ledger, seconds, quiet=as_json):
        audit = asyncio.run(run(settings, plan, ledger))
    summary = summarize(ledger, audit)
    if as_json:
        print_json(summary.document() | {"ledger": str(file)})
    else:
        show(summary)
        out.print(Text(f"Every answer the shoppers got: {file}", "dim"))
    context.exit(1 if summary.violations else 0)


def new_file(settings: Settings) -> Path:
    return settings.home / "simulations" / f"{datetime.now(UTC):%Y%m%dT%H%M%S.%f}.jsonl"


@contextmanager
def show_shoppers(ledger: "Ledger", seconds: float, quiet: bool) -> Iterator[None]:
    """Shows on a terminal what the shoppers have done so far."""
    began = monotonic()

    def describe() -> str:
        elapsed = monotonic() - began
        orders = len({checkout.order_id for checkout in ledger.checkouts})
        figures = f"{len(ledger.answers)} requests · {ledger.tally['POST /v1/carts']} carts · {orders} orders"
        phase = f"{elapsed:.0f} of {seconds:.0f} s" if elapsed < seconds else "closed, waiting for the last orders"
        return f"{phase} · {sum(ledger.visits.values())} visits · {figures}"

    with progress(quiet) as shown:
        shown.follow("shop", describe)
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
    err.print(Text("  → The audit counts everybody who shopped in that time. If nobody else did, the shop has a bug."))


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
