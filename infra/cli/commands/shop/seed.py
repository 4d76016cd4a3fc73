"""`till seed`: fills the shelves of a shop."""

import asyncio

import click

from infra.cli.render.console import json_option, out, print_json
from infra.cli.render.progress import progress
from infra.local.shelves import stock
from infra.settings import Settings
from services.catalog.seed import assortment


@click.command()
@json_option
def seed(as_json: bool) -> None:
    """Put the opening assortment on the shelves, through the shop API.

    Products that are already listed stay as they are. The first `till up` does the same.

    \b
    Example:
      till seed
    """
    total, listed = sum(1 for _ in assortment()), 0
    with progress(quiet=as_json) as shown:

        def advance() -> None:
            nonlocal listed
            listed += 1
            shown.count("shelves", "stocking", listed, total)

        products = asyncio.run(stock(Settings.load(), advance))
    if as_json:
        print_json({"products": products})
    else:
        out.print(f"{products} products are on the shelves.")
