"""What the cart remembers of products is forgotten when it changes, and never trusted when changes cannot be heard."""

from collections.abc import AsyncIterator

import pytest
from sqlalchemy.schema import CreateTable

from services.cart.commands import Product
from services.cart.products import Products
from services.cart.views import CHANGED, KnownProductTable
from shared.money import Money
from shared.service import Runtime
from tests.integration.kit import Tallies, running, until

pytestmark = pytest.mark.anyio


@pytest.fixture
async def runtime(tallies: Tallies) -> AsyncIterator[Runtime]:
    async with tallies.opened() as runtime:
        await runtime.pool.execute(str(CreateTable(KnownProductTable.__table__)))  # type: ignore[attr-defined]
        await runtime.pool.execute("INSERT INTO products VALUES ('MUG', 'Mug', 100, 'EUR', false, 1)")
        yield runtime


async def reprice(runtime: Runtime, cents: int, notice: bool = True) -> None:
    async with runtime.pool.acquire() as connection, connection.transaction():
        await connection.execute("UPDATE products SET price = $1, version = version + 1", cents)
        if notice:
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


async def test_a_product_is_looked_up_once_and_again_when_it_has_changed(runtime: Runtime) -> None:
    products = Products(runtime.pool)
    async with running(products.follow()):
        await until(lambda: listener(runtime))
        await until_known(products, 100)
        await reprice(runtime, 200, notice=False)
        assert await products.find("MUG") == at(100), "it is not remembered: then the rest shows nothing"
        await reprice(runtime, 300)
        await until_known(products, 300)


async def test_who_asks_for_a_version_sees_it_even_before_the_notice(runtime: Runtime) -> None:
    products = Products(runtime.pool)
    async with running(products.follow()):
        await until(lambda: listener(runtime))
        await until_known(products, 100)
        await reprice(runtime, 200, notice=False)
        assert await products.version("MUG") == 2
        assert await products.find("MUG") == at(200)


async def test_while_changes_cannot_be_heard_nothing_is_remembered(runtime: Runtime) -> None:
    products = Products(runtime.pool)
    assert await products.find("MUG") == at(100)
    await reprice(runtime, 200, notice=False)
    assert (await products.find_all(["MUG", "POT"])) == {"MUG": at(200)}


async def test_a_listener_whose_connection_dies_forgets_everything_and_listens_again(runtime: Runtime) -> None:
    products = Products(runtime.pool)
    async with running(products.follow()):
        pid = await until(lambda: listener(runtime))
        await until_known(products, 100)
        await runtime.pool.execute("SELECT pg_terminate_backend($1)", pid)
        await reprice(runtime, 200)  # a notice that nobody hears
        await until_known(products, 200)

        async def another() -> bool:
            return await listener(runtime) not in (None, pid)

        await until(another)
        await reprice(runtime, 300)
        await until_known(products, 300)
