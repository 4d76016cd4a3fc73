"""`python -m tests.load.books open|check LEDGER`: the books of a load run, before it and after it."""

import asyncio
import time
from pathlib import Path

import click
import httpx

from infra.cli.simulate import show
from infra.shoppers.evidence import Audit, auditor
from infra.shoppers.ledger import read_from, written_to
from infra.shoppers.summary import summarize
from shared.http.auth import Tokens
from shared.settings import HOST, Settings

FLASH = "FLASH-"
PIECES = 20

ledger_file = click.argument("ledger", type=click.Path(path_type=Path))


@click.group()
def books() -> None:
    """Of a load run."""


@books.command("open")
@ledger_file
def open_(ledger: Path) -> None:
    """Put a few pieces of something everybody wants on the shelves, and note what is there."""
    settings = Settings.load()
    _list_flash_product(settings)

    async def note() -> None:
        async with auditor(settings) as auditing:
            opening, _ = await auditing.opening()
        with written_to(ledger) as opened:
            opened.note(opening)

    asyncio.run(note())


@books.command()
@ledger_file
@click.option("--patience", default=60.0, show_default=True, help="Seconds the last orders have.")
@click.pass_context
def check(context: click.Context, ledger: Path, patience: float) -> None:
    """Exit code 1 when they do not balance."""
    settings, kept = Settings.load(), read_from(ledger)

    async def settle() -> Audit:
        async with auditor(settings) as auditing:
            return await auditing.settle(kept, patience)

    summary = summarize(kept, asyncio.run(settle()))
    show(summary)
    context.exit(1 if summary.violations else 0)


def _list_flash_product(settings: Settings) -> None:
    """Shown to shoppers and known to carts before anybody comes."""
    sku = f"{FLASH}{int(time.time())}"
    operator = {"Authorization": f"Bearer {Tokens(settings).mint('load test', ['operator'], 300)}"}
    details = {"name": "What everybody wants", "price": {"amount": 4990, "currency": "EUR"}, "stock": PIECES}
    with httpx.Client(base_url=f"http://{HOST}:{settings.shop_port}", timeout=30) as shop:
        listed = shop.put(f"/v1/products/{sku}", json=details, headers=operator).raise_for_status()
        reached = {"Min-Position": listed.headers["Event-Position"]}
        shop.get(f"/v1/products/{sku}", headers=reached).raise_for_status()
        guest = {"Authorization": f"Bearer {shop.post('/v1/sessions').json()['token']}"}
        cart = shop.post("/v1/carts", headers=guest).headers["Location"]
        shop.post(f"{cart}/items", json={"sku": sku, "quantity": 1}, headers=guest | reached).raise_for_status()


if __name__ == "__main__":
    books()
