"""Queries of the read model `orders`."""

from typing import Any

from sqlalchemy import BigInteger, Integer, Text, bindparam
from sqlmodel import col, select, tuple_

from services.order.views import ORDERS
from shared.http.positions import Position
from shared.store.database import Pool
from shared.store.queries import CompiledQuery

CURSOR = r"^[0-9]{1,18}\.[0-9a-f-]{36}$"
"""The form of a cursor: when the last order of the page was placed, and its id."""
BEFORE_ALL = f"{2**62}."

Orders = ORDERS.model
IS_OWN = col(Orders.customer_id) == bindparam("customer_id")
PAGE = CompiledQuery(
    select(Orders)
    .where(IS_OWN)
    .where(
        tuple_(col(Orders.placed_at), col(Orders.order_id))
        < tuple_(bindparam("placed_at", type_=BigInteger), bindparam("order_id", type_=Text))
    )
    .order_by(col(Orders.placed_at).desc(), col(Orders.order_id).desc())
    .limit(bindparam("limit", type_=Integer))
)
VERSION_OF_ORDER = CompiledQuery(select(Orders.version).where(IS_OWN, col(Orders.order_id) == bindparam("key")))
VERSION_OF_CART = CompiledQuery(select(Orders.version).where(IS_OWN, col(Orders.cart_id) == bindparam("key")))


async def page_of_orders(pool: Pool, customer_id: str, cursor: str | None, limit: int) -> tuple[list[Any], str | None]:
    """Returns up to `limit` rows, the latest order first, and the cursor of the next page if there is one."""
    placed_at, _, order_id = (cursor or BEFORE_ALL).partition(".")
    rows = await PAGE.rows(pool, customer_id=customer_id, placed_at=int(placed_at), order_id=order_id, limit=limit + 1)
    last = rows[limit - 1] if len(rows) > limit else None
    return rows[:limit], f"{last['placed_at']}.{last['order_id']}" if last else None


async def is_listed(pool: Pool, position: Position, customer_id: str) -> bool:
    """Tells whether the list shows the position: a version of an order, or the order of a checked-out cart.

    False for anyone but the owner, so a stranger only runs into the timeout.
    """
    if position.category == "cart":
        return await VERSION_OF_CART.value(pool, customer_id=customer_id, key=position.key) is not None
    version = await VERSION_OF_ORDER.value(pool, customer_id=customer_id, key=position.key)
    return version is not None and version >= position.version
