"""What happened to an order, told from the streams of all services at once."""

from collections.abc import Sequence
from dataclasses import asdict
from typing import Any
from uuid import UUID

from fastapi import APIRouter, Response
from pydantic import BaseModel

from services.order.decider import payment_of
from shared.envelope import Recorded, rfc3339
from shared.errors import Refused
from shared.http.calls import Authenticated, answer_list
from shared.http.routes import LeanRoute
from shared.service import Runtime

SEALED = {"recipient"}


class Happening(BaseModel):
    id: str
    type: str
    service: str
    stream: str
    time: str
    version: int
    actor: str
    caused_by: str
    data: dict[str, Any]


class Timeline(BaseModel):
    items: list[Happening]


def router(runtimes: Sequence[Runtime]) -> APIRouter:
    routes = APIRouter(tags=["order"], route_class=LeanRoute)
    by_category = {runtime.service.decider.category: runtime for runtime in runtimes}

    @routes.get("/v1/orders/{order_id}/events", response_model=Timeline, summary="Its timeline across services")
    async def events(order_id: UUID, call: Authenticated) -> Response:
        orders = by_category["order"]
        history = await orders.store.history(f"order:{order_id}")
        if not history:
            raise Refused("order-unknown", "There is no such order.")
        placed = await orders.memory.decode(history[0].value)
        if placed.customer_id != call.principal.subject and "support" not in call.principal.roles:
            raise Refused("order-unknown", "There is no such order.")
        told = [(orders, event) for event in history]
        told += await _history(by_category["cart"], placed.cart_id)
        told += await _history(by_category["payment"], payment_of(str(order_id)))
        # A product's stream has the events of all orders: take those of the requests that this one went through.
        requests = sorted({event.correlation_id for event in history})
        for line in placed.lines:
            told += await _history(by_category["stock"], line.sku, requests)
        told.sort(key=lambda pair: (pair[1].time, pair[1].version))
        return answer_list({"items": [await _happening(runtime, event) for runtime, event in told]})

    return routes


async def _history(runtime: Runtime, key: str, requests: Sequence[str] | None = None) -> list[tuple[Runtime, Recorded]]:
    stream_id = runtime.service.decider.stream_id(key)
    return [(runtime, event) for event in await runtime.store.history(stream_id, correlation_ids=requests)]


async def _happening(runtime: Runtime, event: Recorded) -> dict[str, Any]:
    data = asdict(await runtime.memory.decode(event.value))
    return {
        "id": event.event_id,
        "type": event.type,
        "service": runtime.service.name,
        "stream": event.stream_id,
        "time": rfc3339(event.time),
        "version": event.version,
        "actor": event.actor,
        "caused_by": event.causation_id,
        "data": {name: value for name, value in data.items() if name not in SEALED},
    }
