"""The product cache forgets what has changed, and caches nothing while it is not notified of changes."""

from collections.abc import AsyncIterator

import pytest
from sqlalchemy.schema import CreateTable

from services.cart.commands import Product
from services.cart.products import ProductCache, Products
from services.cart.views import CHANGED, PRODUCTS
from services.common.money import Money
from shared.service import Runtime
from tests.integration.shared.loops import running, until
from tests.integration.shared.tallies import Tallies

pytestmark = pytest.mark.anyio


@pytest.fixture
async def runtime(tallies: Tallies) -> AsyncIterator[Runtime]:
    async with tallies.opened() as runtime:
        await runtime.pool.execute(str(CreateTable(PRODUCTS.declaration)))
        await runtime.pool.execute("INSERT INTO products VALUES ('MUG', 'Mug', 100, 'EUR', false, 1)")
        yield runtime


async def reprice(runtime: Runtime, cents: int, notify: bool = True) -> None:
    async with runtime.pool.acquire() as connection, connection.transaction():
        await connection.execute("UPDATE products SET price = $1, version = version + 1", cents)
        if notify:
            await connection.execute("SELECT pg_notify($1, 'MUG')", CHANGED)


def at(cents: int) -> Product:
    return Product("Mug", Money(cents, "EUR"))


async def listener(runtime: Runtime) -> int | None:
    pid: int | None = await runtime.pool.fetchval(
        "SELECT pid FROM pg_stat_activity WHERE application_name = $1 AND query LIKE 'LISTEN %'",
        f"till {runtime.service.name}",
    )
    return pid


async def until_known(products: Products, cents: int) -> None:
    async def known() -> bool:
        return await products.find("MUG") == at(cents)

    await until(known)


async def test_a_product_is_read_once_and_again_after_it_has_changed(runtime: Runtime) -> None:
    cache = ProductCache()
    products = Products(runtime.pool, cache)
    async with running(cache.follow(runtime.pool)):
        await until(lambda: listener(runtime))
        await until_known(products, 100)
        await reprice(runtime, 200, notify=False)
        assert await products.find("MUG") == at(100), (
            "the product is not cached, so the rest of this test shows nothing"
        )
        await reprice(runtime, 300)
        await until_known(products, 300)


async def test_a_version_that_is_asked_for_is_seen_even_before_its_notification(runtime: Runtime) -> None:
    cache = ProductCache()
    products = Products(runtime.pool, cache)
    async with running(cache.follow(runtime.pool)):
        await until(lambda: listener(runtime))
        await until_known(products, 100)
        await reprice(runtime, 200, notify=False)
        assert await products.version("MUG") == 2
        assert await products.find("MUG") == at(200)


async def test_without_notifications_no_product_is_cached(runtime: Runtime) -> None:
    products = Products(runtime.pool, ProductCache())
    assert await products.find("MUG") == at(100)
    await reprice(runtime, 200, notify=False)
    assert (await products.find_all(["MUG", "POT"])) == {"MUG": at(200)}


async def test_a_cache_whose_connection_dies_forgets_everything_and_listens_again(runtime: Runtime) -> None:
    cache = ProductCache()
    products = Products(runtime.pool, cache)
    async with running(cache.follow(runtime.pool)):
        pid = await until(lambda: listener(runtime))
        await until_known(products, 100)
        await runtime.pool.execute("SELECT pg_terminate_backend($1)", pid)
        await reprice(runtime, 200)  # no connection listens to this notification
        await until_known(products, 200)

        async def another() -> bool:
            return await listener(runtime) not in (None, pid)

        await until(another)
        await reprice(runtime, 300)
        await until_known(products, 300)
