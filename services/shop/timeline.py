"""What happened to an order, told from the streams of all services at once."""

from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

from fastapi import APIRouter, Response
from pydantic import BaseModel

from services.order.api import visible
from services.order.models import UNKNOWN, OrderId
from services.replay.related import Happened, story_of_order
from shared.envelope import rfc3339
from shared.http.calls import Authenticated, answer_list
from shared.http.examples import ORDER_ID, like
from shared.http.routes import LeanRoute
from shared.service import Runtime
from shared.vault import Vault

SEALED = "recipient"
HAPPENING = {
    "id": "0190b1de-0000-7000-8000-000000000007",
    "type": "LineReserved",
    "service": "order",
    "stream": f"order:{ORDER_ID}",
    "time": "2026-11-16T08:00:00.000Z",
    "version": 2,
    "actor": "service:order",
    "caused_by": "0190b1de-0000-7000-8000-000000000006",
    "data": {"order_id": ORDER_ID, "sku": "MUG-350"},
}


class Happening(BaseModel):
    model_config = like(HAPPENING)

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
    model_config = like({"items": [HAPPENING]})

    items: list[Happening]


def router(runtimes: Sequence[Runtime]) -> APIRouter:
    routes = APIRouter(tags=["order"], route_class=LeanRoute)
    by_category = {runtime.service.decider.category: runtime for runtime in runtimes}

    orders = by_category["order"]
    vault = Vault(orders.pool, orders.settings)

    @routes.get(
        "/v1/orders/{order_id}/events",
        response_model=Timeline,
        summary="Its timeline across services",
        responses=UNKNOWN,
    )
    async def events(order_id: OrderId, call: Authenticated) -> Response:
        await visible(orders, call, order_id)
        told = await story_of_order(by_category, str(order_id))
        return answer_list({"items": [await _happening(vault, by_category[it.category], it) for it in told]})

    return routes


async def _happening(vault: Vault, runtime: Runtime, happened: Happened) -> dict[str, Any]:
    event, data = happened.recorded, asdict(happened.event)
    if SEALED in data:  # name and address; null once they are erased
        data[SEALED] = await vault.unseal(data["customer_id"], data[SEALED])
    return {
        "id": event.event_id,
        "type": event.type,
        "service": runtime.service.name,
        "stream": event.stream_id,
        "time": rfc3339(event.time),
        "version": event.version,
        "actor": event.actor,
        "caused_by": event.causation_id,
        "data": data,
    }
