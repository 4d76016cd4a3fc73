"""`till seed`: fill the shelves of a shop."""

import asyncio

import click
from rich.progress import Progress

from infra.cli.console import as_json as json_option
from infra.cli.console import err, out, print_json
from infra.local.shelves import stock
from services.catalog.seed import assortment
from shared.settings import Settings


@click.command()
@json_option
def seed(as_json: bool) -> None:
    """Put the opening assortment on the shelves, through the shop API. What is there already stays as it is.

    The first `till up` of a home does it by itself.
    """
    with Progress(console=err, transient=True, disable=as_json or not err.is_terminal) as progress:
        task = progress.add_task("Stocking the shelves", total=sum(1 for _ in assortment()))
        listed = asyncio.run(stock(Settings.load(), lambda: progress.advance(task)))
    if as_json:
        print_json({"products": listed})
    else:
        out.print(f"{listed} products are on the shelves.")
