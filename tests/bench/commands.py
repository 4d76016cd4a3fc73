"""Commands of 32 concurrent callers (load, fold, decide, append), compared with the `eventsourcing` library."""

import asyncio
from concurrent.futures import ThreadPoolExecutor
from typing import Any
from urllib.parse import urlparse

from eventsourcing.application import Application
from eventsourcing.domain import Aggregate, event
from uuid_utils import uuid7

from infra.settings import Settings
from tests.bench.figures import Figure, side_by_side
from tests.bench.kit.kernel import CONCURRENCY, ME, Stopwatch, add_item, cart_service, empty, open_carts

EACH = 150
TUNED = {"AGGREGATE_CACHE_MAXSIZE": "1000", "POSTGRES_POOL_SIZE": "32", "POSTGRES_MAX_OVERFLOW": "8"}


class TheirCart(Aggregate):
    @event("Opened")
    def __init__(self, customer_id: str) -> None:
        self.customer_id = customer_id
        self.lines: dict[str, int] = {}

    @event("ItemAdded")
    def add_item(self, sku: str, name: str, quantity: int, amount: int, currency: str) -> None:  # noqa: ARG002
        self.lines[sku] = self.lines.get(sku, 0) + quantity


async def run(settings: Settings) -> list[Figure]:
    async with cart_service(settings) as runtime:

        async def ours() -> float:
            await empty(runtime.pool)
            names = [str(uuid7()) for _ in range(CONCURRENCY)]
            await open_carts(runtime.handler, names)

            async def shopper(name: str) -> None:
                for n in range(EACH):
                    await runtime.handler.handle(f"cart:{name}", add_item(n), ME)

            with Stopwatch() as watch:
                await asyncio.gather(*(shopper(name) for name in names))
            return CONCURRENCY * EACH / watch.seconds

        tuned = their_application(settings, TUNED)
        default = their_application(settings, {})
        try:
            against_tuned = await side_by_side(ours, lambda: _theirs(tuned), rounds=3)
            against_default = await side_by_side(ours, lambda: _theirs(default), rounds=3)
        finally:
            tuned.close()
            default.close()
    return [
        Figure("commands, 32 at once, eventsourcing tuned", *against_tuned, "commands/s", at_least=6),
        Figure("commands, 32 at once, eventsourcing as it comes", *against_default, "commands/s", at_least=30),
    ]


def their_application(settings: Settings, more: dict[str, str]) -> Application[Any]:
    url = urlparse(settings.database_url.get_secret_value())
    return Application(
        env={
            "PERSISTENCE_MODULE": "eventsourcing.postgres",
            "POSTGRES_DBNAME": url.path.lstrip("/"),
            "POSTGRES_HOST": url.hostname or "",
            "POSTGRES_PORT": str(url.port),
            "POSTGRES_USER": url.username or "",
            "POSTGRES_PASSWORD": url.password or "unused",
            **more,
        }
    )


async def _theirs(application: Application[Any]) -> float:
    carts = [TheirCart("customer") for _ in range(CONCURRENCY)]
    for cart in carts:
        application.save(cart)

    def shopper(cart_id: Any) -> None:
        for n in range(EACH):
            cart: TheirCart = application.repository.get(cart_id)
            cart.add_item(f"SKU-{n % 40}", "Enamel mug 350 ml", 1, 1290, "EUR")
            application.save(cart)

    loop = asyncio.get_running_loop()
    with ThreadPoolExecutor(CONCURRENCY) as threads, Stopwatch() as watch:
        await asyncio.gather(*(loop.run_in_executor(threads, shopper, cart.id) for cart in carts))
    return CONCURRENCY * EACH / watch.seconds
