"""Fills the shelves of a new shop, through its own API."""

import asyncio
from collections.abc import Callable

import httpx

from infra.settings import Settings
from services.catalog.commands import PutProduct
from services.catalog.seed import assortment
from shared.errors import OperatorError
from shared.http.auth import Tokens
from shared.settings import HOST

REQUESTS_AT_ONCE = 16


async def stock_if_bare(settings: Settings) -> None:
    """Stocks a shop that has no products yet, at its first start."""
    async with _shop(settings) as shop:
        if not (await shop.get("/v1/products", params={"limit": 1})).json()["items"]:
            await _put_all(shop, list(assortment()), lambda: None)


async def stock(settings: Settings, advance: Callable[[], None]) -> int:
    """Stocks the whole assortment. Products that are already listed stay as they are."""
    products = list(assortment())
    async with _shop(settings) as shop:
        await _put_all(shop, products, advance)
    return len(products)


def _shop(settings: Settings) -> httpx.AsyncClient:
    token = Tokens(settings).mint("till seed", ["operator"], 3600)
    url = f"http://{HOST}:{settings.shop_port}"
    return httpx.AsyncClient(base_url=url, headers={"Authorization": f"Bearer {token}"}, timeout=30)


async def _put_all(shop: httpx.AsyncClient, products: list[PutProduct], advance: Callable[[], None]) -> None:
    turn = asyncio.Semaphore(REQUESTS_AT_ONCE)

    async def put(product: PutProduct) -> None:
        price = {"amount": product.price.amount, "currency": product.price.currency}
        body = {"name": product.name, "price": price, "stock": product.stock}
        async with turn:
            # If-None-Match: a product that is listed already keeps its price and its stock.
            answer = await shop.put(f"/v1/products/{product.sku}", json=body, headers={"If-None-Match": "*"})
        if answer.status_code not in (httpx.codes.OK, httpx.codes.PRECONDITION_FAILED):
            raise OperatorError(f"The shop refused {product.sku}: {answer.text}")
        advance()

    try:
        async with asyncio.TaskGroup() as tasks:
            for product in products:
                tasks.create_task(put(product))
    except* httpx.TransportError as failed:
        raise OperatorError(
            f"The shop at {shop.base_url} does not answer: {failed.exceptions[0]!r}", "Start it with: till up"
        ) from failed
