"""`till at`: the whole shop at a moment, and the versions of the lake's tables that belong to it."""

from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict
from datetime import datetime
from typing import TYPE_CHECKING, Any

import click
from rich.table import Table
from rich.text import Text

from infra.cli.console import as_json, err, out, print_json
from infra.cli.moments import MOMENT, both
from infra.cli.refusals import BadInput, reading
from infra.cli.telling import show
from shared.errors import OperatorError
from shared.money import Money
from shared.settings import Settings

if TYPE_CHECKING:
    from collections.abc import Callable

    from infra.lake_versions import TableVersion
    from services.replay.shop import Shop

DEEDS = ("placed", "confirmed", "authorised", "captured", "voided", "refunded")


# So that -2h is a moment: neither an unknown option, nor (by its h) a cry for help.
@click.command(context_settings={"ignore_unknown_options": True, "help_option_names": ["--help"]})
@click.argument("moment", metavar="T", type=MOMENT)
@as_json
def at(moment: datetime, as_json: bool) -> None:
    """The whole shop at T: open carts, orders by status, money, stock, and the lake's versions of that moment.

    T is RFC 3339, or so long ago (-5m). It is a consistent cut: no effect is shown without its cause, although the
    clocks of services may disagree. What is dated before T and has a cause after it is taken back, and said so. The
    rolls are read through once, stream by stream, in one view of the database while the shop goes on selling.

    \b
    Examples:
      till at -5m
      till at 2026-11-16T07:44:21Z --json
    """
    settings = Settings.load()
    shop = reading(_shop(settings.database_url.get_secret_value(), moment, quiet=as_json))
    versions, trouble = _lake(settings, moment)
    if as_json:
        lake = {"tables": versions, "error": trouble or None}
        print_json({**vars(shop), "stock": _stock(shop), "lake": lake})
        return
    out.print(Text.assemble(("The shop at ", "bold"), (both(moment), "bold"), "\n"))
    show(_facts(shop))
    _print_money(shop)
    _print_movers(shop)
    _print_cut(shop)
    _print_lake(versions, trouble)


async def _shop(url: str, moment: datetime, quiet: bool) -> "Shop":
    from services.replay.rolls import open_rolls
    from services.replay.shop import beginning, shop_at

    async with open_rolls(url) as rolls:
        begun = await beginning(rolls)
        if begun is None:
            raise BadInput("Nothing has happened in this shop yet.", "Let somebody buy: till simulate")
        if moment < begun:
            raise BadInput("The shop had not opened then.", f"Ask for a moment from its beginning on: {both(begun)}.")
        with _counting(quiet) as looked_at:
            return await shop_at(rolls, moment, looked_at)


@contextmanager
def _counting(quiet: bool) -> "Iterator[Callable[[int], None]]":
    """On a terminal, how many events have been read so far."""
    if quiet or not err.is_terminal:
        yield lambda _: None
        return
    with err.status("Reading the rolls") as status:
        yield lambda read: status.update(f"Reading the rolls: {read:,} events")


def _lake(settings: Settings, moment: datetime) -> "tuple[list[TableVersion], str]":
    """Its versions, or why they cannot be told. The shop is shown all the same."""
    import asyncio

    try:
        from infra.lake_versions import lake_versions
        from services.replay.rolls import CATEGORIES

        topics = [kept.topic for kept in CATEGORIES.values()]
        return asyncio.run(lake_versions(settings, topics, moment)), ""
    except ModuleNotFoundError as missing:  # a service image carries no lake
        return [], f"{missing.name} is not installed here."
    except OperatorError as error:
        return [], error.message


def _facts(shop: "Shop") -> Table:
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
    told = [
        f"{count:,} {name}" + (f" ({more[name]})" if more.get(name) else "") for name, count in sorted(counts.items())
    ]
    return ", ".join(told) or "none"


def _print_money(shop: "Shop") -> None:
    if not shop.money:
        return
    currencies = sorted(shop.money)
    table = Table("money", *currencies, box=None, header_style="dim", pad_edge=False)
    for column in table.columns[1:]:
        column.justify = "right"
    for deed in DEEDS:
        table.add_row(deed, *(str(Money(shop.money[c][deed], c)).partition(" ")[0] for c in currencies))
    out.print()
    show(table)


def _print_movers(shop: "Shop") -> None:
    if shop.stock.movers:
        out.print()
        out.print(Text("sold most", "dim"))
        for mover in shop.stock.movers:
            out.print(Text(f"  {mover.sold:>7,}  {mover.sku}  {mover.name}"))


def _print_cut(shop: "Shop") -> None:
    out.print()
    table = Table("the cut", "position", "events", "taken back", box=None, header_style="dim", pad_edge=False)
    for column in table.columns[1:]:
        column.justify = "right"
    for service, reach in shop.reached.items():
        table.add_row(service, f"{reach.position:,}", f"{reach.events:,}", f"{reach.taken_back:,}")
    show(table)
    if sum(reach.taken_back for reach in shop.reached.values()):
        out.print(Text("Taken back: dated before this moment, but their causes are dated after it.", "yellow"))


def _print_lake(versions: "list[TableVersion]", trouble: str) -> None:
    out.print()
    if trouble or not versions:
        out.print(Text.assemble(("the lake  ", "dim"), trouble or "There is none yet. Start it with: till lake run"))
        return
    table = Table("the lake", "version", "newest", box=None, header_style="dim", pad_edge=False)
    for found in versions:
        shown = str(found.version) if found.version is not None else Text("has not come that far", "yellow")
        table.add_row(found.name, shown, str(found.newest))
    show(table)


def _stock(shop: "Shop") -> dict[str, Any]:
    return asdict(shop.stock) | {"movers": [mover._asdict() for mover in shop.stock.movers]}
