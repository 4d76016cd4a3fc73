"""Starts one shop for all tests of its API, with an operator, a customer, a product and a cart."""

from collections.abc import Iterator

import httpx
import pytest

from tests.e2e.conftest import running
from tests.e2e.shop import Product, Shop, new_sku, open_cart, put_in, put_product


@pytest.fixture(scope="package")
def shop(stack_environment: dict[str, str], stack: object) -> Iterator[Shop]:
    yield from running(stack_environment)


@pytest.fixture(scope="package")
def operator(shop: Shop) -> Iterator[httpx.Client]:
    with shop.staff("operator") as operator:
        yield operator


@pytest.fixture
def ann(shop: Shop) -> Iterator[httpx.Client]:
    with shop.guest() as ann:
        yield ann


@pytest.fixture(scope="package")
def mug(operator: httpx.Client) -> Product:
    return put_product(operator, new_sku(), 1190)


@pytest.fixture
def cart(ann: httpx.Client, mug: Product) -> str:
    """Opens a cart with one mug in it."""
    path = open_cart(ann)
    put_in(ann, path, mug)
    return path


@pytest.fixture
def nothing_written(shop: Shop, ann: httpx.Client, cart: str) -> Iterator[None]:
    """Checks around a test that neither an event nor an answer is stored and the cart is unchanged."""
    before, shown = shop.written(), ann.get(cart).content
    yield
    assert shop.written() == before
    assert ann.get(cart).content == shown
