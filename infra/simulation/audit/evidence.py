"""Gathers the evidence of an audit: shelves and orders from the shop, movements from the provider."""

import asyncio
from collections.abc import AsyncIterator, Collection
from contextlib import asynccontextmanager
from typing import Any, NamedTuple

import httpx

from infra.settings import Settings
from infra.simulation.audit.books import PENDING, Evidence, Movement, Order, Violation, violations
from infra.simulation.audit.ledger import Ledger, Opening
from infra.simulation.shoppers.steps import Product
from services.common.money import Money
from shared.errors import OperatorError
from shared.http.auth import Tokens
from shared.settings import HOST

REQUESTS_AT_ONCE = 8
POLL_SECONDS = 0.5


class Audit(NamedTuple):
    evidence: Evidence
    violations: list[Violation]


class Auditor:
    """Reads everything: it mints a token for each customer whose orders it needs."""

    def __init__(self, shop: httpx.AsyncClient, provider: httpx.AsyncClient, tokens: Tokens) -> None:
        self._shop = shop
        self._provider = provider
        self._tokens = tokens
        self._turn = asyncio.Semaphore(REQUESTS_AT_ONCE)

    async def opening(self) -> tuple[Opening, list[Product]]:
        products = [
            Product(item["sku"], item["price"]["amount"], item["available"])
            async for item in self._pages("/v1/products", {})
        ]
        movements = await self._ledger(after=0)
        last = movements[-1]["id"] if movements else 0
        return Opening({product.sku: product.available for product in products}, last), products

    async def settle(self, ledger: Ledger, patience: float) -> Audit:
        """Audits until the books balance, or until patience is over; then returns what is wrong."""
        loop = asyncio.get_running_loop()
        give_up = loop.time() + patience
        known: dict[str, list[Order]] = {}
        customers: Collection[str] = ledger.customers
        while True:
            known |= await self._orders(customers)
            evidence = await self._evidence(ledger, [order for orders in known.values() for order in orders])
            found = violations(ledger, evidence)
            if not found or loop.time() > give_up:
                return Audit(evidence, found)
            await asyncio.sleep(POLL_SECONDS)
            # While some orders are undecided, read only these; then all, because views may lag.
            waiting = {order.customer_id for order in evidence.orders if order.status in PENDING}
            customers = waiting or ledger.customers

    async def _evidence(self, ledger: Ledger, orders: list[Order]) -> Evidence:
        shelves = {item["sku"]: item["available"] async for item in self._pages("/v1/products", {})}
        movements = await self._ledger(after=ledger.opening.last_movement)
        return Evidence(
            orders,
            [Movement(it["payment_id"], it["kind"], Money(it["amount"], it["currency"])) for it in movements],
            shelves,
        )

    async def _orders(self, customers: Collection[str]) -> dict[str, list[Order]]:
        async with asyncio.TaskGroup() as tasks:
            asked = {customer: tasks.create_task(self._orders_of(customer)) for customer in customers}
        return {customer: task.result() for customer, task in asked.items()}

    async def _orders_of(self, customer_id: str) -> list[Order]:
        token = self._tokens.mint(customer_id, ["customer"], 300)
        headers = {"Authorization": f"Bearer {token}"}
        async with self._turn:
            return [_order(item) async for item in self._pages("/v1/orders", headers)]

    async def _pages(self, path: str, headers: dict[str, str]) -> AsyncIterator[dict[str, Any]]:
        cursor: dict[str, str] = {}
        while True:
            page = await self._read(self._shop, path, {"limit": "200", **cursor}, headers)
            for item in page["items"]:
                yield item
            if not page["next_cursor"]:
                return
            cursor = {"cursor": page["next_cursor"]}

    async def _ledger(self, after: int) -> list[dict[str, Any]]:
        movements: list[dict[str, Any]] = (await self._read(self._provider, "/ledger", {"after": str(after)}))[
            "movements"
        ]
        return movements

    async def _read(
        self, http: httpx.AsyncClient, path: str, params: dict[str, str], headers: dict[str, str] | None = None
    ) -> Any:
        try:
            answer = await http.get(path, params=params, headers=headers)
        except httpx.TransportError as error:
            raise OperatorError(f"{http.base_url} does not answer: {error!r}", "Start it with: till up") from error
        if not answer.is_success:
            raise OperatorError(f"{http.base_url} answered {answer.status_code} to {path}: {answer.text}")
        return answer.json()


@asynccontextmanager
async def auditor(settings: Settings) -> AsyncIterator[Auditor]:
    shop_url = f"http://{HOST}:{settings.shop_port}"
    async with (
        httpx.AsyncClient(base_url=shop_url, timeout=30) as shop,
        httpx.AsyncClient(base_url=settings.psp_url, timeout=30) as provider,
    ):
        yield Auditor(shop, provider, Tokens(settings))


def _order(item: dict[str, Any]) -> Order:
    return Order(
        order_id=item["order_id"],
        cart_id=item["cart_id"],
        customer_id=item["customer_id"],
        status=item["status"],
        reason=item["reason"] or "",
        lines={line["sku"]: line["quantity"] for line in item["lines"]},
        total=Money(item["total"]["amount"], item["total"]["currency"]),
        payment_id=item["payment_id"] or "",
    )
