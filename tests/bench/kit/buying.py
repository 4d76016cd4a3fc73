"""Buys with as little client work as possible, and keeps a ledger of it, for the bench of orders."""

import asyncio
import time
from typing import Any

import httpx

from infra.settings import Settings
from infra.simulation.audit.evidence import Auditor
from infra.simulation.audit.ledger import Asked, Ledger
from infra.simulation.shoppers.shopper import SHIPPING, accepted
from shared.http.auth import Tokens
from shared.settings import HOST
from tests.bench.kit.thin import Thin

PRODUCTS = 40
TOKEN = "tok_ok"
PATIENCE_SECONDS = 120.0


def sku(n: int) -> str:
    return f"ORDER-{n % PRODUCTS}"


async def opened(settings: Settings, books: Auditor) -> Ledger:
    """Stocks the shop, waits until carts know the products, and returns a ledger for it."""
    operator = {"Authorization": f"Bearer {Tokens(settings).mint('bench', ['operator'], 3600)}"}
    product = {"name": "Bench", "price": {"amount": 1000, "currency": "EUR"}, "stock": 1_000_000}
    async with httpx.AsyncClient(base_url=f"http://{HOST}:{settings.shop_port}", headers=operator, timeout=30) as shop:
        cart = (await shop.post("/v1/carts")).headers["Location"]
        for n in range(PRODUCTS):
            listed = (await shop.put(f"/v1/products/{sku(n)}", json=product)).raise_for_status()
            reached = {"Min-Position": listed.headers["Event-Position"]}
            (await shop.get(f"/v1/products/{sku(n)}", headers=reached)).raise_for_status()
            item = {"sku": sku(n), "quantity": 1}
            (await shop.post(f"{cart}/items", json=item, headers=reached)).raise_for_status()
    ledger = Ledger()
    ledger.note((await books.opening())[0])
    return ledger


async def come_in(shop: Thin) -> None:
    shop.token = ""
    shop.token = (await ask(shop, "POST", "/v1/sessions"))["token"]


async def buy(shop: Thin, ledger: Ledger, n: int) -> tuple[str, float]:
    """Buys one piece and returns the order's id and when its checkout was sent."""
    path = f"/v1/carts/{(await ask(shop, 'POST', '/v1/carts'))['cart_id']}"
    cart = await ask(shop, "POST", f"{path}/items", {"sku": sku(n), "quantity": 1})
    ledger.note(Asked(cart["cart_id"]))
    sent = time.perf_counter()
    order = await ask(shop, "POST", f"{path}/checkout", {"payment_token": TOKEN, "shipping": SHIPPING})
    ledger.note(accepted(order["order_id"], cart, TOKEN))
    return order["order_id"], sent


async def until_paid(settings: Settings, ledger: Ledger) -> None:
    """Waits until the provider has captured every payment. It is asked only for new movements, to cost it little."""
    unpaid, seen = len(ledger.checkouts), ledger.opening.last_movement
    async with asyncio.timeout(PATIENCE_SECONDS), httpx.AsyncClient(base_url=settings.psp_url) as provider:
        while unpaid:
            movements = (await provider.get("/ledger", params={"after": seen})).json()["movements"]
            unpaid -= sum(movement["kind"] == "captured" for movement in movements)
            seen = movements[-1]["id"] if movements else seen
            await asyncio.sleep(0.02)


async def ask(shop: Thin, method: str, path: str, body: Any = None) -> Any:
    status, answer = await shop(method, path, body)
    if not 200 <= status < 300:
        raise RuntimeError(f"{method} {path} was answered {status}: {answer}")
    return answer
