"""Queries of the read model `products`."""

from typing import Any

from sqlalchemy import Integer, bindparam
from sqlmodel import col, select

from services.catalog.views import PRODUCTS
from shared.http.positions import Position
from shared.store.database import Pool
from shared.store.queries import CompiledQuery

Products = PRODUCTS.model
PAGE = CompiledQuery(
    select(Products)
    .where(~col(Products.withdrawn), col(Products.sku) > bindparam("after"))
    .order_by(col(Products.sku))
    .limit(bindparam("limit", type_=Integer))
)
ON_SALE = CompiledQuery(select(Products).where(~col(Products.withdrawn), col(Products.sku) == bindparam("sku")))
VERSION = CompiledQuery(select(Products.version).where(col(Products.sku) == bindparam("sku")))


async def page_of_products(pool: Pool, cursor: str | None, limit: int) -> tuple[list[Any], str | None]:
    """Returns up to `limit` rows in the order of their SKUs, and the cursor of the next page if there is one."""
    rows = await PAGE.rows(pool, after=cursor or "", limit=limit + 1)
    return rows[:limit], rows[limit - 1]["sku"] if len(rows) > limit else None


async def find_product(pool: Pool, sku: str) -> Any:
    """Returns the row of a product, or None if there is none or it was withdrawn."""
    return await ON_SALE.row(pool, sku=sku)


async def is_shown(pool: Pool, position: Position) -> bool:
    """Tells whether the read model shows this version of a product."""
    version = await VERSION.value(pool, sku=position.key)
    return version is not None and version >= position.version
