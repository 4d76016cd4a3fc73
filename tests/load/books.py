"""`python -m tests.load.books open|check LEDGER`: opens the books before a load run, and audits them after it."""

import asyncio
import time
from pathlib import Path

import click
import httpx

from infra.cli.commands.shop.simulate import show
from infra.settings import Settings
from infra.simulation.audit.evidence import Audit, auditor
from infra.simulation.audit.ledger import create_ledger, read_ledger
from infra.simulation.audit.summary import summarize
from shared.http.auth import Tokens
from shared.settings import HOST

FLASH = "FLASH-"
PIECES = 20

ledger_file = click.argument("ledger", type=click.Path(path_type=Path))


@click.group()
def books() -> None:
    """Open and audit the books of a load run."""


@books.command("open")
@ledger_file
def open_(ledger: Path) -> None:
    """List a product in short supply, and note what is on the shelves."""
    settings = Settings.load()
    _list_flash_product(settings)

    async def note() -> None:
        async with auditor(settings) as auditing:
            opening, _ = await auditing.opening()
        with create_ledger(ledger) as opened:
            opened.note(opening)

    asyncio.run(note())


@books.command()
@ledger_file
@click.option("--patience", default=60.0, show_default=True, help="Seconds to wait for the last orders.")
@click.pass_context
def check(context: click.Context, ledger: Path, patience: float) -> None:
    """Audit the books. Exit code 1 when they do not balance."""
    settings, recorded = Settings.load(), read_ledger(ledger)

    async def settle() -> Audit:
        async with auditor(settings) as auditing:
            return await auditing.settle(recorded, patience)

    summary = summarize(recorded, asyncio.run(settle()))
    show(summary)
    context.exit(1 if summary.violations else 0)


def _list_flash_product(settings: Settings) -> None:
    """Lists the product of the flash sale, and waits until the catalog shows it and carts accept it."""
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
