"""`till demo`: a few seconds in the life of the running shop, told from its events."""

import asyncio
import shutil
import sys
from collections.abc import Iterator
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
import httpx
from rich.table import Table
from rich.text import Text

from infra.cli.cells import print_rows
from infra.cli.console import as_json as json_option
from infra.cli.console import out, print_json
from infra.cli.lake_work import bring_lake_up_to_date
from infra.cli.simulate import new_file, progress, show_books
from shared.http.auth import Tokens
from shared.money import Money
from shared.settings import HOST, Settings

if TYPE_CHECKING:
    from infra.shoppers.books import Order
    from infra.shoppers.summary import Summary

SHOPPERS, FRAUD = 12, 0.1
COLOURS = {"cart": "cyan", "order": "magenta", "catalog": "yellow", "payment": "green"}
LAKE_QUESTION = (
    "SELECT status, count(*) AS orders, sum(total) AS cents, sum(captured - refunded) AS kept_cents "
    "FROM gold.orders GROUP BY status ORDER BY orders DESC"
)
UNTOLD = {"at", "cart_id", "order_id", "customer_id", "payment_id"}


@click.command()
@click.option("--seconds", default=8.0, show_default=True, type=click.FloatRange(1, 600), help="How long they shop.")
@click.option("--seed", default=1, show_default=True, help="The same seed, the same choices.")
@click.option("--lake/--no-lake", "with_lake", default=True, show_default=True, help="Bring the lake up to date, too.")
@json_option
@click.pass_context
def demo(context: click.Context, seconds: float, seed: int, with_lake: bool, as_json: bool) -> None:
    """Let shoppers buy for a few seconds, run the lake, and show what became of it. The shop stays up."""
    from infra.shoppers.ledger import written_to
    from infra.shoppers.simulation import Plan, simulate
    from infra.shoppers.summary import summarize

    settings = Settings.load()
    if not as_json:
        out.print(f"{SHOPPERS} shoppers, {seconds:g} seconds, at http://{HOST}:{settings.shop_port}")
    file = new_file(settings)
    with written_to(file) as ledger, progress(ledger, seconds, quiet=as_json):
        audit = asyncio.run(simulate(settings, Plan(SHOPPERS, seconds, seed, FRAUD), ledger))
    summary = summarize(ledger, audit)
    sample = max((it for it in audit.evidence.orders if it.status == "confirmed"), key=_interest, default=None)
    timeline = _timeline(settings, sample) if sample else []
    if as_json:
        lake = bring_lake_up_to_date(settings, quiet=True) if with_lake else None
        document = summary.document() | {"ledger": str(file), "lake": lake}
        print_json(document | {"sample": {"order": sample, "events": timeline}})
    else:
        _tell(summary, sample, timeline)
        if with_lake:
            _tell_of_the_lake(settings)
        _tell_what_next(settings, sample, with_lake)
    context.exit(1 if summary.violations else 0)


def _interest(order: "Order") -> tuple[int, str]:
    return min(len(order.lines), 2), order.order_id


def _timeline(settings: Settings, order: "Order") -> list[dict[str, Any]]:
    """As its customer may see it."""
    token = Tokens(settings).mint(order.customer_id, ["customer"], 60)
    url = f"http://{HOST}:{settings.shop_port}/v1/orders/{order.order_id}/events"
    answer = httpx.get(url, headers={"Authorization": f"Bearer {token}"}, timeout=30)
    events: list[dict[str, Any]] = answer.raise_for_status().json()["items"]
    return events


def _tell(summary: "Summary", sample: "Order | None", timeline: list[dict[str, Any]]) -> None:
    visits = sum(summary.visits.values())
    out.print(f"\n{visits} visits, {summary.carts} carts, {summary.checkouts} orders:")
    for outcome, count in summary.orders.items():
        out.print(f"{count:6} {outcome}")
    if sample:
        out.print(Text(f"\nOne of them, order {sample.order_id} of {sample.total}, is these events:\n", "bold"))
        out.print(_as_table(timeline))
    out.print(Text("\nWhat the shop says it sold, and what the payment provider says it moved:\n", "bold"))
    show_books(summary)


def _tell_of_the_lake(settings: Settings) -> None:
    """The same once more, by way of Kafka, Spark and Delta: no service was asked for it."""
    from analytics.reading.asking import ask

    out.print(
        Text("\nSpark now brings the lake up to date: Kafka ▸ bronze ▸ silver ▸ gold. It takes a minute.\n", "bold")
    )
    done = bring_lake_up_to_date(settings, quiet=False)
    out.print(f"{done['events']:,} events are in the lake now. Asked of it: {LAKE_QUESTION}\n")
    answer = ask(settings, LAKE_QUESTION)
    print_rows(answer.columns, answer.types, answer.rows)


def _tell_what_next(settings: Settings, sample: "Order | None", with_lake: bool) -> None:
    out.print(Text("\nThe shop is up. To go on:\n", "bold"))
    for command, about in _next(settings, sample, with_lake):
        out.print(Text(f"  {command}", "cyan"), Text(f"    {about}", "dim"), sep="\n", soft_wrap=True)


def _as_table(timeline: list[dict[str, Any]]) -> Table:
    table = Table("after", "service", "event", "", box=None, header_style="dim")
    table.columns[0].justify = "right"
    began = datetime.fromisoformat(timeline[0]["time"]) if timeline else None
    for event in timeline:
        after = (datetime.fromisoformat(event["time"]) - began).total_seconds() if began else 0.0
        told = Text("  ".join(_told(event["data"])), "dim", overflow="ellipsis", no_wrap=True)
        table.add_row(f"{after:.3f} s", Text(event["service"], COLOURS.get(event["service"], "")), event["type"], told)
    return table


def _told(data: dict[str, Any]) -> Iterator[str]:
    for name, value in data.items():
        match value:
            case _ if name in UNTOLD or not value:
                continue
            case {"amount": int(amount), "currency": str(currency)}:
                yield str(Money(amount, currency))
            case str() | int():
                yield f"{name} {value}"


def _next(settings: Settings, sample: "Order | None", with_lake: bool) -> Iterator[tuple[str, str]]:
    shop, till = f"http://{HOST}:{settings.shop_port}", _till()
    yield f"{shop}/docs", "the API, to try by hand"
    if sample:
        order = f"{shop}/v1/orders/{sample.order_id}"
        customer = f'-H "Authorization: Bearer $({till} token --subject {sample.customer_id})"'
        support = f'-H "Authorization: Bearer $({till} token --role support)"'
        yield f"curl {customer} {order}", "that order, as its customer"
        yield f"curl -X POST {support} {order}/cancel", "cancel it as support: the money goes back"
    yield f"curl {settings.psp_url}/ledger", "the provider's own ledger"
    yield f"{till} simulate --shoppers 30 --seconds 20 --fraud 0.2", "more shoppers, and worse ones"
    if with_lake:
        yield (
            f'{till} sql "SELECT status, reason, count(*) FROM gold.orders GROUP BY ALL"',
            "ask the lake something else",
        )
        yield f"{till} lake report", "a page with plots"
        yield f"{till} lake stream", "keep the lake up to date as shoppers buy"
    yield f"{till} status", "what runs, and how far the facts have flowed"


def _till() -> str:
    """As it can be called from here: by its name only where that is found."""
    here = Path(sys.executable).with_name("till")
    if shutil.which("till") or not here.exists():
        return "till"
    return str(here.relative_to(Path.cwd()) if here.is_relative_to(Path.cwd()) else here)
