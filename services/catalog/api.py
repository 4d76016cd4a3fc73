"""The catalogue over HTTP: anyone may browse, operators put products on the shelf and take them off."""

from typing import Annotated, Any

from fastapi import APIRouter, Query, Response

from services.catalog.commands import PutProduct, WithdrawProduct
from services.catalog.decider import Listed
from services.catalog.models import RESERVED, UNKNOWN, NewSku, ProductDetails, ProductPage, ProductView
from shared.handler import Handled
from shared.http.calls import Operator, Position, Reading, answer_list, answer_read
from shared.http.models import Sku, price_view
from shared.http.problems import Problem
from shared.http.routes import LeanRoute
from shared.money import Money
from shared.service import Runtime

STATUSES = {
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

COLUMNS = "sku, name, price, currency, available, withdrawn, version"


def router(runtime: Runtime) -> APIRouter:
    routes = APIRouter(tags=["catalog"], route_class=LeanRoute)
    handler, pool = runtime.handler, runtime.pool

    async def shown(position: Position) -> bool:
        version = await pool.fetchval("SELECT version FROM products WHERE sku = $1", position.key)
        return version is not None and version >= position.version

    @routes.get("/v1/products", response_model=ProductPage, summary="Browse the catalogue")
    async def browse(
        reading: Reading, limit: Annotated[int, Query(ge=1, le=200)] = 50, cursor: Sku | None = None
    ) -> Response:
        await reading.wait_for({"stock": shown})
        rows = await pool.fetch(
            f"SELECT {COLUMNS} FROM products WHERE NOT withdrawn AND sku > $1 ORDER BY sku LIMIT $2",
            cursor or "",
            limit + 1,
        )
        items = [_view(row) for row in rows[:limit]]
        return answer_list({"items": items, "next_cursor": items[-1]["sku"] if len(rows) > limit else None})

    @routes.get("/v1/products/{sku}", response_model=ProductView, summary="One product", responses=UNKNOWN)
    async def product(sku: Sku, reading: Reading) -> Response:
        await reading.wait_for({"stock": shown})
        row = await pool.fetchrow(f"SELECT {COLUMNS} FROM products WHERE sku = $1", sku)
        if row is None or row["withdrawn"]:
            raise Problem(404, "product-unknown", f"There is no product {sku}.")
        return answer_read(Handled(f"stock:{sku}", None, row["version"]), _view(row))

    @routes.put(
        "/v1/products/{sku}", response_model=ProductView, summary="List or change a product", responses=RESERVED
    )
    async def put(sku: NewSku, details: ProductDetails, call: Operator) -> Response:
        price = Money(details.price.amount, details.price.currency)
        command = PutProduct(sku, details.name, price, details.stock)
        return await call.perform(handler, f"stock:{sku}", command, _rendered)

    @routes.delete(
        "/v1/products/{sku}", response_model=ProductView, summary="Withdraw a product from sale", responses=UNKNOWN
    )
    async def withdraw(sku: Sku, call: Operator) -> Response:
        return await call.perform(handler, f"stock:{sku}", WithdrawProduct(sku), _rendered)

    return routes


def _view(row: Any) -> dict[str, Any]:
    return {
        "sku": row["sku"],
        "name": row["name"],
        "price": {"amount": row["price"], "currency": row["currency"]},
        "available": max(row["available"], 0),
    }


def _rendered(handled: Handled[Any, Any]) -> dict[str, Any]:
    product: Listed = handled.state
    return {
        "sku": product.sku,
        "name": product.name,
        "price": price_view(product.price),
        "available": product.available,
    }
