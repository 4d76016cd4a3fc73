"""The catalog API: anyone may browse; operators list, change and withdraw products."""

from functools import partial
from typing import Annotated

from fastapi import APIRouter, Query, Response

from services.catalog.bodies import (
    RESERVED,
    UNKNOWN,
    NewSku,
    ProductBody,
    ProductDetails,
    ProductPage,
    product_body,
    product_body_of_row,
)
from services.catalog.commands import PutProduct, WithdrawProduct
from services.catalog.queries import find_product, is_shown, page_of_products
from services.common.bodies import Sku
from services.common.money import Money
from services.common.roles import Operator
from shared.decider import Versioned
from shared.http.calls import Reading
from shared.http.problems import Problem
from shared.http.responses import answer_list, answer_read
from shared.service import Runtime

REFUSAL_STATUSES = {
    "sku-invalid": 422,
    "name-empty": 422,
    "name-unprintable": 422,
    "name-too-long": 422,
    "currency-invalid": 422,
    "price-invalid": 422,
    "stock-negative": 422,
    "stock-too-large": 422,
    "product-unknown": 404,
}


def router(runtime: Runtime) -> APIRouter:
    routes = APIRouter(tags=["catalog"])
    handler, pool = runtime.handler, runtime.pool
    shown = partial(is_shown, pool)

    @routes.get("/v1/products", response_model=ProductPage, summary="Browse the catalog")
    async def browse(
        reading: Reading, limit: Annotated[int, Query(ge=1, le=200)] = 50, cursor: Sku | None = None
    ) -> Response:
        await reading.wait_for({"stock": shown})
        rows, next_cursor = await page_of_products(pool, cursor, limit)
        return answer_list({"items": [product_body_of_row(row) for row in rows], "next_cursor": next_cursor})

    @routes.get("/v1/products/{sku}", response_model=ProductBody, summary="One product", responses=UNKNOWN)
    async def product(sku: Sku, reading: Reading) -> Response:
        await reading.wait_for({"stock": shown})
        row = await find_product(pool, sku)
        if row is None:
            raise Problem(404, "product-unknown", f"There is no product {sku}.")
        return answer_read(Versioned(f"stock:{sku}", None, row["version"]), product_body_of_row(row))

    @routes.put(
        "/v1/products/{sku}", response_model=ProductBody, summary="List or change a product", responses=RESERVED
    )
    async def put(sku: NewSku, details: ProductDetails, call: Operator) -> Response:
        price = Money(details.price.amount, details.price.currency)
        command = PutProduct(sku, details.name, price, details.stock)
        await call.wait_for({f"stock:{sku}": shown})
        return await call.perform(handler, f"stock:{sku}", command, product_body)

    @routes.delete(
        "/v1/products/{sku}", response_model=ProductBody, summary="Withdraw a product from sale", responses=UNKNOWN
    )
    async def withdraw(sku: Sku, call: Operator) -> Response:
        await call.wait_for({f"stock:{sku}": shown})
        return await call.perform(handler, f"stock:{sku}", WithdrawProduct(sku), product_body)

    return routes
