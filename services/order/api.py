"""Orders over HTTP: what became of a checkout, as it is, as it was, and as it happens."""

import asyncio
import re
import time
from collections.abc import AsyncIterator, Mapping
from datetime import datetime
from functools import partial
from typing import Annotated, Any
from uuid import UUID

import orjson
from fastapi import APIRouter, Query, Response

from services.order.commands import CancelOrder
from services.order.decider import Cancelled, Confirmed, InReview, Order, Placed, Reserved, Unplaced
from services.order.events import OrderPlaced
from services.order.models import (
    CONFIRMED,
    RESUME,
    STREAM,
    UNKNOWN,
    EventStream,
    OrderDetails,
    OrderId,
    OrderPage,
    OrderView,
)
from shared.errors import Refused
from shared.handler import Handled
from shared.http.calls import Authenticated, Call, Position, answer_list, answer_read
from shared.http.models import line_view, price_view
from shared.http.problems import Problem
from shared.http.routes import LeanRoute
from shared.service import Runtime
from shared.timetravel import AsOf, as_of
from shared.vault import Vault

STATUSES = {"order-unknown": 404, "version-unknown": 404}
STATUS = {
    Placed: "placed",
    Reserved: "reserved",
    InReview: "in_review",
    Confirmed: "confirmed",
    Cancelled: "cancelled",
}
COLUMNS = "order_id, cart_id, customer_id, status, reason, lines, total, currency, payment_id, placed_at, version"
CURSOR = r"^[0-9]{1,18}\.[0-9a-f-]{36}$"
LAST_EVENT_ID = re.compile(r"[0-9]{1,9}")
END = f"{2**62}."
POLL_SECONDS = 0.05
KEEP_ALIVE_SECONDS = 15.0


def router(runtime: Runtime) -> APIRouter:
    routes = APIRouter(tags=["order"], route_class=LeanRoute)
    handler, pool, vault = runtime.handler, runtime.pool, Vault(runtime.pool, runtime.settings)

    async def listed(position: Position, customer_id: str) -> bool:
        """To whom an order is not, it never is."""
        column = "cart_id" if position.category == "cart" else "order_id"
        query = f"SELECT version FROM orders WHERE {column} = $1 AND customer_id = $2"
        version = await pool.fetchval(query, position.key, customer_id)
        return version is not None and (position.category == "cart" or version >= position.version)

    async def shipping(placed: OrderPlaced) -> dict[str, Any]:
        """Only where it is read: what is stored as an answer could not be erased."""
        person = await vault.unseal(placed.customer_id, placed.recipient)
        shown: Mapping[str, str | None] = person or {"name": None, "address": None}
        return {"method": placed.shipping_method, **shown, "erased": person is None}

    @routes.get("/v1/orders", response_model=OrderPage, summary="One's orders, the latest first")
    async def list_orders(
        call: Authenticated,
        limit: Annotated[int, Query(ge=1, le=200)] = 50,
        cursor: Annotated[str | None, Query(pattern=CURSOR, description="`next_cursor` of the page before.")] = None,
    ) -> Response:
        shown = partial(listed, customer_id=call.principal.subject)
        await call.wait_for({"order": shown, "cart": shown})
        placed_at, _, order_id = (cursor or END).partition(".")
        rows = await pool.fetch(
            f"SELECT {COLUMNS} FROM orders WHERE customer_id = $1 AND (placed_at, order_id) < ($2, $3)"
            " ORDER BY placed_at DESC, order_id DESC LIMIT $4",
            call.principal.subject,
            int(placed_at),
            order_id,
            limit + 1,
        )
        last = rows[limit - 1] if len(rows) > limit else None
        return answer_list(
            {
                "items": [_row_view(row) for row in rows[:limit]],
                "next_cursor": f"{last['placed_at']}.{last['order_id']}" if last else None,
            }
        )

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
        handled = await visible(runtime, call, order_id)
        if version or at:
            handled = await as_of(runtime, handled.stream_id, AsOf(version, at))
        if isinstance(handled.state, Unplaced):
            raise Refused("order-unknown", "There was no such order then.")
        return answer_read(handled, rendered(handled) | {"shipping": await shipping(handled.state.order)})

    @routes.get(
        "/v1/orders/{order_id}/stream",
        response_class=EventStream,
        summary="Its status changes as they happen (Server-Sent Events)",
        responses=UNKNOWN | STREAM,
        openapi_extra={"parameters": [RESUME]},
    )
    async def stream(order_id: OrderId, call: Authenticated) -> Response:
        await visible(runtime, call, order_id)
        last = call.request.headers.get("last-event-id", "0")
        if not LAST_EVENT_ID.fullmatch(last):
            raise Problem(400, "last-event-id-invalid", "Last-Event-ID is the id of the last event received.")
        changes = _status_changes(runtime, f"order:{order_id}", int(last))
        return EventStream(changes, headers={"Cache-Control": "no-store"})

    @routes.post(
        "/v1/orders/{order_id}/cancel",
        response_model=OrderView,
        summary="Cancel an order",
        responses=UNKNOWN | CONFIRMED,
    )
    async def cancel(order_id: OrderId, call: Authenticated) -> Response:
        await visible(runtime, call, order_id)
        by_support = "support" in call.principal.roles
        command = CancelOrder("support" if by_support else "customer", call.principal.subject)
        return await call.perform(handler, f"order:{order_id}", command, rendered)

    return routes


async def visible(runtime: Runtime, call: Call, order_id: UUID) -> Handled[Order, Any]:
    """The order as it is now, to whom it may concern."""
    stream_id = f"order:{order_id}"

    async def look() -> tuple[Handled[Order, Any], OrderPlaced] | None:
        handled = await runtime.handler.state(stream_id)
        if isinstance(handled.state, Unplaced) or not call.principal.may_see(handled.state.order.customer_id):
            return None
        return handled, handled.state.order

    async def stored(position: Position) -> bool:
        return position.version <= (await runtime.handler.state(stream_id)).version

    async def placed(_checkout: Position) -> bool:
        return True  # or it would not have been found

    if not (found := await call.find(look, "order", "cart")):
        raise Refused("order-unknown", "There is no such order.")
    if not call.min_position:
        return found[0]
    await call.wait_for({stream_id: stored, f"cart:{found[1].cart_id}": placed})
    return await runtime.handler.state(stream_id)


async def _status_changes(runtime: Runtime, stream_id: str, last: int) -> AsyncIterator[bytes]:
    """Each status once, with the version that led to it as its id; ends after a final one."""
    decider = runtime.service.decider
    state: Order = decider.initial
    version, quiet_since = 0, time.monotonic()
    while True:
        for value in await runtime.store.load(stream_id, version):
            before = STATUS.get(type(state))
            state = decider.evolve(state, await runtime.memory.decode(value))
            version += 1
            if STATUS[type(state)] != before and version > last:
                document = orjson.dumps(rendered(Handled(stream_id, state, version)))
                yield b"id: %d\nevent: status\ndata: %s\n\n" % (version, document)
                quiet_since = time.monotonic()
        if isinstance(state, Confirmed | Cancelled):
            return
        if time.monotonic() - quiet_since > KEEP_ALIVE_SECONDS:
            yield b": still here\n\n"
            quiet_since = time.monotonic()
        await asyncio.sleep(POLL_SECONDS)


def rendered(handled: Handled[Order, Any]) -> dict[str, Any]:
    order = handled.state
    assert not isinstance(order, Unplaced)
    placed = order.order
    return {
        "order_id": placed.order_id,
        "cart_id": placed.cart_id,
        "customer_id": placed.customer_id,
        "status": STATUS[type(order)],
        "reason": order.reason if isinstance(order, Cancelled) else None,
        "lines": [line_view(line) for line in placed.lines],
        "total": price_view(placed.total),
        "payment_id": None if isinstance(order, Placed) else order.payment_id or None,
        "version": handled.version,
    }


def _row_view(row: Any) -> dict[str, Any]:
    fields = ("order_id", "cart_id", "customer_id", "status", "reason", "payment_id", "version")
    return {name: row[name] for name in fields} | {
        "lines": orjson.loads(row["lines"]),
        "total": {"amount": row["total"], "currency": row["currency"]},
    }
