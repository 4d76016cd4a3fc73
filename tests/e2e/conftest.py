"""Starts one shop for all tests of a module, stops it at the end, and checks that it leaves cleanly."""

from collections.abc import Iterator

import pytest

from tests.e2e.shop import Shop, new_sku, put_product, started


@pytest.fixture(scope="module")
def shop(stack_environment: dict[str, str], stack: object) -> Iterator[Shop]:
    yield from running(stack_environment)


def running(stack_environment: dict[str, str]) -> Iterator[Shop]:
    with started(stack_environment) as shop:
        yield shop
        with shop.staff("operator") as operator:
            product = put_product(operator, new_sku())
        assert shop.stop() == 0, shop.log.read_text()
        own = [product.sku, f"stock:{product.sku}"]
        waiting = shop.fetch("catalog", "SELECT FROM outbox WHERE key = ANY($1)", own)
        assert not waiting, "it left before what it had accepted was published"
