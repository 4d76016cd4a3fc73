"""`till seed`: fill the shelves of a new shop."""

import asyncio

import click
import httpx
from rich.progress import Progress

from infra.cli.console import as_json as json_option
from infra.cli.console import err, out, print_json
from services.catalog.commands import PutProduct
from services.catalog.seed import assortment
from shared.errors import OperatorError
from shared.http.auth import Tokens
from shared.settings import Settings

AT_ONCE = 16


@click.command()
@json_option
def seed(as_json: bool) -> None:
    """Put the opening assortment on the shelves, through the shop API. What is there already stays as it is."""
    listed = asyncio.run(_seed(Settings.load(), list(assortment())))
    if as_json:
        print_json({"products": listed})
    else:
        out.print(f"{listed} products are on the shelves.")


async def _seed(settings: Settings, products: list[PutProduct]) -> int:
    token = Tokens(settings).mint("till seed", ["operator"], 3600)
    turn = asyncio.Semaphore(AT_ONCE)
    shop = f"http://{settings.shop_host}:{settings.shop_port}"
    with Progress(console=err, transient=True, disable=not err.is_terminal) as progress:
        task = progress.add_task("Stocking the shelves", total=len(products))
        async with httpx.AsyncClient(base_url=shop, headers={"Authorization": f"Bearer {token}"}) as http:

            async def put(product: PutProduct) -> None:
                body = {
                    "name": product.name,
                    "price": {"amount": product.price.amount, "currency": product.price.currency},
                    "stock": product.stock,
                }
                async with turn:
                    # If-None-Match: a shop that has sold from it keeps its own price and count.
                    answer = await http.put(f"/v1/products/{product.sku}", json=body, headers={"If-None-Match": "*"})
                if answer.status_code not in (200, 412):
                    raise OperatorError(f"The shop refused {product.sku}: {answer.text}")
                progress.advance(task)

            try:
                async with asyncio.TaskGroup() as tasks:
                    for product in products:
                        tasks.create_task(put(product))
            except* httpx.HTTPError as group:
                raise OperatorError(
                    f"The shop at {shop} does not answer: {group.exceptions[0]!r}", "Start it with: till up"
                ) from group
    return len(products)
