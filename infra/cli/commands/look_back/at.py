"""`till at`: shows the whole shop at a moment, and the versions of the lake's tables that belong to it."""

import re
from collections import Counter
from dataclasses import asdict
from datetime import datetime
from typing import TYPE_CHECKING, Any

import click
from rich.table import Table
from rich.text import Text

from infra.cli.render.console import json_option, out, print_json, print_wide
from infra.cli.render.errors import BadInput, run_query
from infra.cli.render.moments import MOMENT, both
from infra.cli.render.program import callable_here
from infra.cli.render.progress import progress
from infra.settings import Settings
from services.common.money import Money
from shared.errors import OperatorError

if TYPE_CHECKING:
    from infra.lake.versions import TableVersion
    from services.operations.history.shop_state import ShopState

NO_LAKE = "There is no lake yet. Fill it with: till lake run"
BEGINS_LIKE_AN_AGE = re.compile(r"-\d")
MOVEMENTS = ("placed", "confirmed", "authorised", "captured", "voided", "refunded")


class AgesAreNotOptions(click.Command):
    """Reads -5m and -2h as moments, although an argument that begins with a dash looks like an option."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        if "--" in args:
            return super().parse_args(ctx, args)
        ages = [argument for argument in args if BEGINS_LIKE_AN_AGE.match(argument)]
        others = [argument for argument in args if argument not in ages]
        return super().parse_args(ctx, [*others, "--", *ages] if ages else others)


@click.command(cls=AgesAreNotOptions)
@click.argument("moment", metavar="T", type=MOMENT)
@json_option
def at(moment: datetime, as_json: bool) -> None:
    """Show the whole shop at T: open carts, orders by status, money, stock, and the lake's versions.

    T is RFC 3339, or an age such as -5m. The answer is a consistent cut: no effect is shown without its cause, although
    the clocks of services may disagree. An event dated before T whose cause is dated after T is left out, and counted
    in the column "taken back". All events are read once, in one snapshot of the database; the shop goes on selling.

    \b
    Examples:
      till at -5m
      till at 2026-11-16T07:44:21Z --json
    """
    settings = Settings.load()
    shop = run_query(_shop(settings.database_url.get_secret_value(), moment, quiet=as_json))
    versions, trouble = _lake(settings, moment)
    if as_json:
        lake = {"tables": versions, "error": trouble or None}
        print_json({**vars(shop), "stock": _stock(shop), "lake": lake})
        return
    out.print(Text.assemble(("The shop at ", "bold"), (both(moment), "bold"), "\n"))
    print_wide(_facts(shop))
    _print_money(shop)
    _print_movers(shop)
    _print_cut(shop)
    _print_lake(versions, trouble)


async def _shop(url: str, moment: datetime, quiet: bool) -> "ShopState":
    from services.operations.history.shop_state import first_event_time, fold_shop
    from services.operations.reading.stores import open_stores

    async with open_stores(url) as stores:
        begun = await first_event_time(stores)
        if begun is None:
            raise BadInput("Nothing has happened in this shop yet.", "Let somebody buy: till simulate")
        if moment < begun:
            raise BadInput("The shop had not opened then.", f"It opened at {both(begun)}.")
        with progress(quiet) as shown:
            return await fold_shop(stores, moment, lambda count: shown.count("events", "reading", count))


def _lake(settings: Settings, moment: datetime) -> "tuple[list[TableVersion], str]":
    """Returns the lake's versions, or why they are not known. The shop is shown in either case."""
    import asyncio

    try:
        from infra.lake.versions import lake_versions
        from services.shop.services import all_deciders

        topics = [decider.topic for decider in all_deciders().values()]
        return asyncio.run(lake_versions(settings, topics, moment)), ""
    except ModuleNotFoundError as missing:  # a service image carries no lake
        return [], f"{missing.name} is not installed here."
    except OperatorError as error:
        return [], error.message


def _facts(shop: "ShopState") -> Table:
    table = Table(box=None, show_header=False, pad_edge=False)
    in_carts = ", ".join(str(Money(amount, currency)) for currency, amount in shop.in_open_carts.items())
    table.add_row(Text("carts", "dim"), _counted(shop.carts, {"open": f"worth {in_carts}" if in_carts else ""}))
    reasons = ", ".join(f"{reason} {count:,}" for reason, count in sorted(shop.reasons.items()))
    table.add_row(Text("orders", "dim"), _counted(shop.orders, {"cancelled": reasons}))
    table.add_row(Text("payments", "dim"), _counted(shop.payments, {}))
    stock = shop.stock
    table.add_row(
        Text("stock", "dim"),
        f"{stock.available:,} available + {stock.reserved:,} reserved + {stock.sold:,} sold"
        f" = {stock.supplied:,} supplied, of {stock.products:,} product{'' if stock.products == 1 else 's'}",
    )
    return table


def _counted(counts: "Counter[str]", more: dict[str, str]) -> str:
    parts = [
        f"{count:,} {name}" + (f" ({more[name]})" if more.get(name) else "") for name, count in sorted(counts.items())
    ]
    return ", ".join(parts) or "none"


def _print_money(shop: "ShopState") -> None:
    if not shop.money:
        return
    currencies = sorted(shop.money)
    table = Table("money", *currencies, box=None, header_style="dim", pad_edge=False)
    for column in table.columns[1:]:
        column.justify = "right"
    for movement in MOVEMENTS:
        table.add_row(movement, *(str(Money(shop.money[c][movement], c)).partition(" ")[0] for c in currencies))
    out.print()
    print_wide(table)


def _print_movers(shop: "ShopState") -> None:
    if shop.stock.movers:
        out.print()
        out.print(Text("sold most", "dim"))
        for mover in shop.stock.movers:
            out.print(Text(f"  {mover.sold:>7,}  {mover.sku}  {mover.name}"))


def _print_cut(shop: "ShopState") -> None:
    out.print()
    table = Table("the cut", "position", "events", "taken back", box=None, header_style="dim", pad_edge=False)
    for column in table.columns[1:]:
        column.justify = "right"
    for service, reach in shop.reached.items():
        table.add_row(service, f"{reach.position:,}", f"{reach.events:,}", f"{reach.taken_back:,}")
    print_wide(table)
    if sum(reach.taken_back for reach in shop.reached.values()):
        out.print(Text("Taken back: events dated before this moment whose causes are dated after it.", "yellow"))


def _print_lake(versions: "list[TableVersion]", trouble: str) -> None:
    out.print()
    if trouble or not versions:
        out.print(Text.assemble(("the lake  ", "dim"), trouble or callable_here(NO_LAKE)))
        return
    table = Table("the lake", "version", "newest", box=None, header_style="dim", pad_edge=False)
    for found in versions:
        shown = str(found.version) if found.version is not None else Text("not that far yet", "yellow")
        table.add_row(found.name, shown, str(found.newest))
    print_wide(table)


def _stock(shop: "ShopState") -> dict[str, Any]:
    return asdict(shop.stock) | {"movers": [mover._asdict() for mover in shop.stock.movers]}
