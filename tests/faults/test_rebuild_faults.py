"""A rebuild that is killed leaves the live view untouched, and the next one continues where it stopped."""

import asyncio
import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import asyncpg
import pytest

from tests.e2e.shop import Shop, new_sku, put_product, started
from tests.till import Till, eventually

PRODUCTS = 4


@pytest.fixture(scope="module")
def shop(stack_environment: dict[str, str], stack: object) -> Iterator[Shop]:
    with started(stack_environment) as shop:
        with shop.staff("operator") as operator:
            for _ in range(PRODUCTS):
                put_product(operator, new_sku())
        eventually(lambda: len(shown(shop)) == PRODUCTS, "the products are listed")
        yield shop


@pytest.fixture
def rebuild(shop: Shop, stack_environment: dict[str, str]) -> Callable[..., Any]:
    def run(**settings: str) -> Any:
        return Till(stack_environment)("rebuild", "catalog.products", "--json", **settings)

    return run


def shown(shop: Shop) -> list[tuple[Any, ...]]:
    """Returns the rows of this shop's own products; those of earlier tests may still change."""
    own = [position.removeprefix("stock:").partition("@")[0] for position in shop.positions]
    return [tuple(row) for row in shop.fetch("catalog", "SELECT * FROM products WHERE sku = ANY($1) ORDER BY sku", own)]


def test_a_rebuild_killed_while_it_builds_or_swaps_continues_where_it_stopped(
    shop: Shop, rebuild: Callable[..., Any]
) -> None:
    before = shown(shop)

    assert rebuild(TILL_CRASH_AT="partly rebuilt").code == -signal.SIGKILL
    assert shown(shop) == before
    [built] = shop.fetch("catalog__new", "SELECT * FROM building")
    assert built["events"] > 0
    assert not built["is_full"]

    assert rebuild(TILL_CRASH_AT="swapped, not committed").code == -signal.SIGKILL
    assert shown(shop) == before
    assert shop.fetch("catalog__new", "SELECT * FROM building")[0]["is_full"]
    with shop.staff("operator") as operator:
        late = put_product(operator, new_sku())
    eventually(lambda: len(shown(shop)) == len(before) + 1, "the live view is still updated")

    ran = rebuild()
    assert ran.code == 0, ran.err
    [done] = ran.document
    assert done["resumed"] >= built["events"]
    assert done["differences"]["counts"] == {}
    assert [row[0] for row in shown(shop)] == sorted([*(row[0] for row in before), late.sku])


def test_ctrl_c_during_a_rebuild_leaves_the_live_view_as_it_is(
    shop: Shop, rebuild: Callable[..., Any], stack_environment: dict[str, str]
) -> None:
    before = shown(shop)
    assert rebuild().code == 0  # creates the table `building`
    with (
        held(shop, "SELECT FROM catalog.offsets WHERE consumer = 'catalog.products' FOR UPDATE"),
        Till(stack_environment).begin("rebuild", "catalog.products") as process,
    ):
        full = "SELECT FROM building WHERE consumer = 'catalog.products' AND is_full"
        eventually(lambda: shop.fetch("catalog__new", full), "the rebuild waits for the swap")
        process.send_signal(signal.SIGINT)
        _, output = process.communicate(timeout=20)
    assert process.returncode == 1
    assert "Interrupted. catalog.products is unchanged; the same command continues where it stopped." in output
    assert "Traceback" not in output
    assert shown(shop) == before
    ran = rebuild()
    assert ran.code == 0, ran.err
    assert ran.document[0]["resumed"] > 0
    assert shown(shop) == before


@contextmanager
def held(shop: Shop, lock: str) -> Iterator[None]:
    """Holds a lock in another transaction until the end of the block."""
    with asyncio.Runner() as runner:
        connection = runner.run(asyncpg.connect(shop.settings.database_url.get_secret_value()))
        transaction = connection.transaction()
        runner.run(transaction.start())
        runner.run(connection.execute(lock))
        try:
            yield
        finally:
            runner.run(transaction.rollback())
            runner.run(connection.close())


def test_of_two_rebuilds_at_once_one_succeeds_and_the_other_may_be_refused(
    shop: Shop, stack_environment: dict[str, str]
) -> None:
    before = shown(shop)
    till = Till(stack_environment)
    with till.begin("rebuild", "catalog.products") as one, till.begin("rebuild", "catalog.products") as other:
        codes = sorted([one.wait(60), other.wait(60)])
        output = one.communicate()[1] + other.communicate()[1]
    assert codes[0] == 0
    assert codes[1] == 0 or "is being rebuilt by another" in output
    assert shown(shop) == before
