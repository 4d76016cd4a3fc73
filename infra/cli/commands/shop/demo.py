"""`till demo`: lets shoppers buy for a few seconds and shows what happened, from the events."""

import asyncio
from collections.abc import Iterator
from datetime import datetime
from typing import TYPE_CHECKING, Any

import click
import httpx
from rich.table import Table
from rich.text import Text

from infra.cli.commands.lake.work import bring_lake_up_to_date
from infra.cli.commands.shop.simulate import new_file, show_books, show_shoppers
from infra.cli.render.console import json_option, out, print_json
from infra.cli.render.program import program
from infra.cli.render.tables import print_rows
from infra.cli.render.values import SENTENCE, text
from infra.settings import Settings
from shared.http.auth import Tokens
from shared.settings import HOST

if TYPE_CHECKING:
    from infra.simulation.audit.books import Order
    from infra.simulation.audit.summary import Summary

SHOPPERS, FRAUD = 12, 0.1
COLOURS = {"cart": "cyan", "order": "magenta", "catalog": "yellow", "payment": "green"}
LAKE_QUESTION = (
    "SELECT status, count(*) AS orders, sum(total) AS cents, sum(captured - refunded) AS kept_cents "
    "FROM gold.orders GROUP BY status ORDER BY orders DESC"
)
NOT_SHOWN = {"at", "cart_id", "order_id", "customer_id", "payment_id"}


@click.command()
@click.option("--seconds", default=8.0, show_default=True, type=click.FloatRange(1, 600), help="How long they shop.")
@click.option("--seed", default=1, show_default=True, help="The same seed makes the same choices.")
@click.option("--lake/--no-lake", "with_lake", default=True, show_default=True, help="Also bring the lake up to date.")
@json_option
@click.pass_context
def demo(context: click.Context, seconds: float, seed: int, with_lake: bool, as_json: bool) -> None:
    """Let shoppers buy for a few seconds, run the lake, and show what happened.

    The shop must be running (till up), and stays up. At the end it prints commands to try next.

    \b
    Examples:
      till demo
      till demo --no-lake       only the shop, which takes seconds
    """
    from infra.simulation.audit.ledger import create_ledger
    from infra.simulation.audit.summary import summarize
    from infra.simulation.shoppers.simulation import Plan, simulate

    settings = Settings.load()
    if not as_json:
        out.print(f"{SHOPPERS} shoppers, {seconds:g} seconds, at http://{HOST}:{settings.shop_port}")
    file = new_file(settings)
    with create_ledger(file) as ledger, show_shoppers(ledger, seconds, quiet=as_json):
        audit = asyncio.run(simulate(settings, Plan(SHOPPERS, seconds, seed, FRAUD), ledger))
    summary = summarize(ledger, audit)
    sample = max((it for it in audit.evidence.orders if it.status == "confirmed"), key=_interest, default=None)
    timeline = _timeline(settings, sample) if sample else []
    if as_json:
        lake = bring_lake_up_to_date(settings, quiet=True) if with_lake else None
        document = summary.document() | {"ledger": str(file), "lake": lake}
        print_json(document | {"sample": {"order": sample, "events": timeline}})
    else:
        _print_summary(summary, sample, timeline)
        if with_lake:
            _print_lake(settings)
        _print_next_steps(settings, sample, with_lake)
    context.exit(1 if summary.violations else 0)


def _interest(order: "Order") -> tuple[int, str]:
    return min(len(order.lines), 2), order.order_id


def _timeline(settings: Settings, order: "Order") -> list[dict[str, Any]]:
    """Fetches the events of an order as its customer sees them."""
    token = Tokens(settings).mint(order.customer_id, ["customer"], 60)
    url = f"http://{HOST}:{settings.shop_port}/v1/orders/{order.order_id}/events"
    answer = httpx.get(url, headers={"Authorization": f"Bearer {token}"}, timeout=30)
    events: list[dict[str, Any]] = answer.raise_for_status().json()["items"]
    return events


def _print_summary(summary: "Summary", sample: "Order | None", timeline: list[dict[str, Any]]) -> None:
    visits = sum(summary.visits.values())
    out.print(f"\n{visits} visits, {summary.carts} carts, {summary.checkouts} orders:")
    for outcome, count in summary.orders.items():
        out.print(f"{count:6} {outcome}")
    if sample:
        out.print(Text(f"\nOne of them, order {sample.order_id} of {sample.total}, has these events:\n", "bold"))
        out.print(_as_table(timeline))
    out.print(Text("\nWhat the shop sold according to its orders, and what the payment provider moved:\n", "bold"))
    show_books(summary)


def _print_lake(settings: Settings) -> None:
    """Shows the same orders from the lake: they came by way of Kafka, Spark and Delta, and no service was queried."""
    from analytics.lake import LakeFiles
    from analytics.query.ask import ask

    out.print(
        Text("\nSpark brings the lake up to date: Kafka ▸ bronze ▸ silver ▸ gold. This takes a minute.\n", "bold")
    )
    done = bring_lake_up_to_date(settings, quiet=False)
    out.print(f"{done['events']:,} new events are in the lake. Querying it: {LAKE_QUESTION}\n")
    answer = ask(LakeFiles(settings), LAKE_QUESTION)
    print_rows(answer.columns, answer.types, answer.rows)


def _print_next_steps(settings: Settings, sample: "Order | None", with_lake: bool) -> None:
    out.print(Text("\nThe shop is up. What to try next:\n", "bold"))
    for command, about in _next(settings, sample, with_lake):
        out.print(Text(f"  {command}", "cyan"), Text(f"    {about}", "dim"), sep="\n", soft_wrap=True)


def _as_table(timeline: list[dict[str, Any]]) -> Table:
    table = Table("after", "service", "event", "", box=None, header_style="dim")
    table.columns[0].justify = "right"
    began = datetime.fromisoformat(timeline[0]["time"]) if timeline else None
    for event in timeline:
        after = (datetime.fromisoformat(event["time"]) - began).total_seconds() if began else 0.0
        data = Text("  ".join(_shown(event["data"])), "dim", overflow="ellipsis", no_wrap=True)
        table.add_row(f"{after:.3f} s", Text(event["service"], COLOURS.get(event["service"], "")), event["type"], data)
    return table


def _shown(data: dict[str, Any]) -> Iterator[str]:
    for name, value in data.items():
        match value:
            case _ if name in NOT_SHOWN or not value:
                continue
            case {"amount": _, "currency": _}:
                yield text(value, SENTENCE)
            case str() | int():
                yield f"{name} {text(value, SENTENCE)}"


def _next(settings: Settings, sample: "Order | None", with_lake: bool) -> Iterator[tuple[str, str]]:
    shop, till = f"http://{HOST}:{settings.shop_port}", program()
    yield f"{shop}/docs", "the API, to try by hand"
    if sample:
        order = f"{shop}/v1/orders/{sample.order_id}"
        customer = f'-H "Authorization: Bearer $({till} token --subject {sample.customer_id})"'
        support = f'-H "Authorization: Bearer $({till} token --role support)"'
        yield f"curl {customer} {order}", "the order above, as its customer"
        yield f"curl -X POST {support} {order}/cancel", "cancel it as support: the money goes back"
    yield f"curl {settings.psp_url}/ledger", "the provider's own ledger"
    yield f"{till} simulate --shoppers 30 --seconds 20 --fraud 0.2", "more shoppers, and more fraud"
    if with_lake:
        yield (
            f'{till} sql "SELECT status, reason, count(*) FROM gold.orders GROUP BY ALL"',
            "another query",
        )
        yield f"{till} lake report", "a page with plots"
        yield f"{till} lake stream", "keep the lake up to date as shoppers buy"
    yield f"{till} status", "what runs, and how far consumers and the lake are behind"
