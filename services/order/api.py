"""Orders over HTTP: what became of a checkout, as it is, as it was, and as it happens."""

import asyncio
import time
from collections.abc import AsyncIterator
from datetime import datetime
from typing import Annotated, Any, Literal
from uuid import UUID

import orjson
from fastapi import APIRouter, Query, Response
from fastapi.responses import StreamingResponse
from pydantic import BaseModel

from services.order.commands import CancelOrder
from services.order.decider import Cancelled, Confirmed, InReview, Order, Placed, Reserved, Unplaced
from services.order.events import Line
from shared.errors import Refused
from shared.handler import Handled
from shared.http.calls import Authenticated, Call, Position, answer_list, answer_read
from shared.http.models import Price
from shared.http.problems import Problem
from shared.http.routes import LeanRoute
from shared.money import Money
from shared.service import Runtime
from shared.timetravel import AsOf, as_of

STATUSES = {"order-unknown": 404, "version-unknown": 404}
STATUS = {
    Placed: "placed",
    Reserved: "reserved",
    InReview: "in_review",
    Confirmed: "confirmed",
    Cancelled: "cancelled",
}
COLUMNS = "order_id, cart_id, customer_id, status, reason, lines, total, currency, payment_id, placed_at, version"
CURSOR = r"^\d{1,18}\.[0-9a-f-]{36}$"
END = f"{2**62}."
# An order exists a moment after its checkout was accepted: whoever asks in between waits rather than hears 404.
GRACE_SECONDS = 2.0
POLL_SECONDS = 0.05
KEEP_ALIVE_SECONDS = 15.0


class LineView(BaseModel):
    sku: str
    name: str
    quantity: int
    unit_price: Price


class OrderView(BaseModel):
    order_id: str
    cart_id: str
    customer_id: str
    status: Literal["placed", "reserved", "in_review", "confirmed", "cancelled"]
    reason: str | None
    lines: list[LineView]
    total: Price
    payment_id: str | None
    version: int


class OrderPage(BaseModel):
    items: list[OrderView]
    next_cursor: str | None


def router(runtime: Runtime) -> APIRouter:
    routes = APIRouter(tags=["order"], route_class=LeanRoute)
    handler, pool = runtime.handler, runtime.pool

    async def reached(position: Position) -> bool:
        category, _, key = position.stream_id.partition(":")
        if category == "cart":
            return bool(await pool.fetchval("SELECT EXISTS (SELECT FROM orders WHERE cart_id = $1)", key))
        version = await pool.fetchval("SELECT version FROM orders WHERE order_id = $1", key)
        return version is not None and version >= position.version

    async def visible(call: Call, order_id: UUID) -> Handled[Order, Any]:
        await call.wait_for(reached)
        deadline = time.monotonic() + GRACE_SECONDS
        handled = await handler.state(f"order:{order_id}")
        while isinstance(handled.state, Unplaced) and time.monotonic() < deadline:
            await asyncio.sleep(POLL_SECONDS)
            handled = await handler.state(f"order:{order_id}")
        if isinstance(handled.state, Unplaced) or not _may_see(call, handled.state.order.customer_id):
            raise Refused("order-unknown", "There is no such order.")
        return handled

    @routes.get("/v1/orders", response_model=OrderPage, summary="One's orders, the latest first")
    async def list_orders(
        call: Authenticated,
        limit: Annotated[int, Query(ge=1, le=200)] = 50,
        cursor: Annotated[str | None, Query(pattern=CURSOR, description="`next_cursor` of the page before.")] = None,
    ) -> Response:
        await call.wait_for(reached)
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
                "items": [_listed(row) for row in rows[:limit]],
                "next_cursor": f"{last['placed_at']}.{last['order_id']}" if last else None,
            }
        )

    @routes.get("/v1/orders/{order_id}", response_model=OrderView, summary="An order as it is, or as it was")
    async def order(
        order_id: UUID,
        call: Authenticated,
        version: Annotated[int | None, Query(ge=1, description="As it was at this version.")] = None,
        at: Annotated[datetime | None, Query(description="As it was at this moment (RFC 3339).")] = None,
    ) -> Response:
        handled = await visible(call, order_id)
        if version or at:
            handled = await as_of(runtime, handled.stream_id, AsOf(version, at))
        if isinstance(handled.state, Unplaced):
            raise Refused("order-unknown", "There was no such order then.")
        return answer_read(handled, rendered(handled))

    @routes.get("/v1/orders/{order_id}/stream", summary="Its status changes as they happen (Server-Sent Events)")
    async def stream(order_id: UUID, call: Authenticated) -> Response:
        await visible(call, order_id)
        last = call.request.headers.get("last-event-id", "0")
        if not last.isdigit():
            raise Problem(400, "last-event-id-invalid", "Last-Event-ID is the id of the last event received.")
        return StreamingResponse(
            _status_changes(runtime, f"order:{order_id}", int(last)),
            media_type="text/event-stream",
            headers={"Cache-Control": "no-store"},
        )

    @routes.post("/v1/orders/{order_id}/cancel", response_model=OrderView, summary="Cancel an order")
    async def cancel(order_id: UUID, call: Authenticated) -> Response:
        await visible(call, order_id)
        by_support = "support" in call.principal.roles
        command = CancelOrder("support" if by_support else "customer", call.principal.subject)
        return await call.perform(handler, f"order:{order_id}", command, rendered)

    return routes


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
        "lines": [_line(line) for line in placed.lines],
        "total": _money(placed.total),
        "payment_id": None if isinstance(order, Placed) else order.payment_id or None,
        "version": handled.version,
    }


def _listed(row: Any) -> dict[str, Any]:
    fields = ("order_id", "cart_id", "customer_id", "status", "reason", "payment_id", "version")
    return {name: row[name] for name in fields} | {
        "lines": orjson.loads(row["lines"]),
        "total": {"amount": row["total"], "currency": row["currency"]},
    }


def _may_see(call: Call, customer_id: str) -> bool:
    return customer_id == call.principal.subject or "support" in call.principal.roles


def _line(line: Line) -> dict[str, Any]:
    return {"sku": line.sku, "name": line.name, "quantity": line.quantity, "unit_price": _money(line.unit_price)}


def _money(money: Money) -> dict[str, Any]:
    return {"amount": money.amount, "currency": money.currency}
