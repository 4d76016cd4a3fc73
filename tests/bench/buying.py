"""Buying as lean as can be, with a ledger of it: what the bench of orders is made of."""

import asyncio
import time
from typing import Any

import httpx

from infra.shoppers.evidence import Auditor
from infra.shoppers.ledger import Asked, Ledger
from infra.shoppers.shopper import SHIPPING, accepted
from shared.http.auth import Tokens
from shared.settings import HOST, Settings
from tests.bench.thin import Thin

PRODUCTS = 40
TOKEN = "tok_ok"
PATIENCE_SECONDS = 120.0


def sku(n: int) -> str:
    return f"ORDER-{n % PRODUCTS}"


async def opened(settings: Settings, books: Auditor) -> Ledger:
    """A ledger of a shop with enough on its shelves, where carts know of it."""
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
    """The order, and when its checkout was sent."""
    path = f"/v1/carts/{(await ask(shop, 'POST', '/v1/carts'))['cart_id']}"
    cart = await ask(shop, "POST", f"{path}/items", {"sku": sku(n), "quantity": 1})
    ledger.note(Asked(cart["cart_id"]))
    sent = time.perf_counter()
    order = await ask(shop, "POST", f"{path}/checkout", {"payment_token": TOKEN, "shipping": SHIPPING})
    ledger.note(accepted(order["order_id"], cart, TOKEN))
    return order["order_id"], sent


async def until_paid(settings: Settings, ledger: Ledger) -> None:
    """All of them, as the provider sees it: asked for what is new only, it hardly notices."""
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
