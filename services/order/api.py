"""The order API: reads orders as they are or were, follows their status as it changes, and cancels them."""

from collections.abc import Mapping
from datetime import datetime
from functools import partial
from typing import Annotated, Any

from fastapi import APIRouter, Query, Response

from services.common.roles import is_support
from services.common.vault import Vault
from services.order.access import find_order
from services.order.bodies import (
    CONFIRMED,
    UNKNOWN,
    OrderBody,
    OrderDetails,
    OrderId,
    OrderPage,
    order_body,
    order_body_of_row,
)
from services.order.commands import CancelOrder
from services.order.decider import Unplaced
from services.order.events import OrderPlaced
from services.order.queries import CURSOR, is_listed, page_of_orders
from services.order.stream import RESUME, STREAM, EventStream, parse_last_event_id, status_changes
from shared.errors import Refused
from shared.http.calls import Authenticated
from shared.http.responses import answer_list, answer_read
from shared.service import Runtime
from shared.store.time_travel import AsOf, as_of

REFUSAL_STATUSES = {"order-unknown": 404, "version-unknown": 404}


def router(runtime: Runtime) -> APIRouter:
    routes = APIRouter(tags=["order"])
    handler, pool, vault = runtime.handler, runtime.pool, Vault(runtime.pool, runtime.settings)

    async def shipping(placed: OrderPlaced) -> dict[str, Any]:
        """Decrypts name and address. Only reads show them: a stored idempotent answer could not be erased."""
        person = await vault.unseal(placed.customer_id, placed.recipient)
        shown: Mapping[str, str | None] = person or {"name": None, "address": None}
        return {"method": placed.shipping_method, **shown, "erased": person is None}

    @routes.get("/v1/orders", response_model=OrderPage, summary="The caller's orders, the latest first")
    async def list_orders(
        call: Authenticated,
        limit: Annotated[int, Query(ge=1, le=200)] = 50,
        cursor: Annotated[str | None, Query(pattern=CURSOR, description="`next_cursor` of the page before.")] = None,
    ) -> Response:
        customer_id = call.principal.subject
        shown = partial(is_listed, pool, customer_id=customer_id)
        await call.wait_for({"order": shown, "cart": shown})
        rows, next_cursor = await page_of_orders(pool, customer_id, cursor, limit)
        return answer_list({"items": [order_body_of_row(row) for row in rows], "next_cursor": next_cursor})

    @routes.get(
        "/v1/orders/{order_id}",
        response_model=OrderDetails,
        summary="An order as it is, or as it was",
        responses=UNKNOWN,
    )
    async def order(
        order_id: OrderId,
        call: Authenticated,
        version: Annotated[int | None, Query(ge=1, description="As it was at this version.")] = None,
        at: Annotated[datetime | None, Query(description="As it was at this moment (RFC 3339).")] = None,
    ) -> Response:
        found = await find_order(runtime, call, order_id)
        if version or at:
            found = await as_of(runtime, found.stream_id, AsOf(version, at))
        if isinstance(found.state, Unplaced):
            raise Refused("order-unknown", "There was no such order then.")
        return answer_read(found, order_body(found) | {"shipping": await shipping(found.state.order)})

    @routes.get(
        "/v1/orders/{order_id}/stream",
        response_class=EventStream,
        summary="The order's status changes as they happen (Server-Sent Events)",
        responses=UNKNOWN | STREAM,
        openapi_extra={"parameters": [RESUME]},
    )
    async def stream(order_id: OrderId, call: Authenticated) -> Response:
        await find_order(runtime, call, order_id)
        after = parse_last_event_id(call.request.headers.get("last-event-id"))
        changes = status_changes(runtime, f"order:{order_id}", after)
        return EventStream(changes, headers={"Cache-Control": "no-store"})

    @routes.post(
        "/v1/orders/{order_id}/cancel",
        response_model=OrderBody,
        summary="Cancel an order",
        responses=UNKNOWN | CONFIRMED,
    )
    async def cancel(order_id: OrderId, call: Authenticated) -> Response:
        await find_order(runtime, call, order_id)
        by_support = is_support(call.principal)
        command = CancelOrder("support" if by_support else "customer", call.principal.subject)
        return await call.perform(handler, f"order:{order_id}", command, order_body)

    return routes
