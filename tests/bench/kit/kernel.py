"""A cart service on a real stack and commands for it, for the benches of the kernel."""

import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from infra.settings import Settings
from services.cart.commands import AddItem, OpenCart, Product
from services.cart.wiring import cart
from services.common.money import Money
from shared.envelope import Context
from shared.handler import CommandHandler
from shared.schemas.contract.event_schemas import load_schemas
from shared.schemas.registration import push
from shared.schemas.registry import Registry
from shared.service import Runtime, open_service
from shared.store.database import Pool

CUSTOMER = "0190b1de-0000-7000-8000-000000000001"
ME = Context(CUSTOMER)
MUG = Product("Enamel mug 350 ml", Money(1290, "EUR"))
CONCURRENCY = 32


@asynccontextmanager
async def cart_service(settings: Settings) -> AsyncIterator[Runtime]:
    async with Registry(settings) as registry:
        await push(registry, load_schemas())
    async with open_service(cart(settings), settings) as runtime:
        yield runtime


async def empty(pool: Pool) -> None:
    """Empties the tables, so that each round starts from the same tables and statistics."""
    await pool.execute("TRUNCATE events, outbox, snapshots, answers, deadlines")
    await pool.execute("ANALYZE events, outbox")


async def open_carts(handler: CommandHandler[Any, Any, Any], names: list[str]) -> None:
    for name in names:
        await handler.handle(f"cart:{name}", OpenCart(CUSTOMER, 0), ME)


def add_item(n: int) -> AddItem:
    """Adds one of 40 products, so that the cart stays within its limits for `40 * 99` commands."""
    return AddItem(CUSTOMER, f"SKU-{n % 40}", 1, MUG, n)


class Stopwatch:
    def __enter__(self) -> "Stopwatch":
        self._start = time.perf_counter()
        return self

    def __exit__(self, *_: object) -> None:
        self.seconds = time.perf_counter() - self._start
