"""GET /v1/orders/{order_id}/events: what happened to an order in all services."""

from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

from fastapi import APIRouter, Response
from pydantic import BaseModel

from services.common.examples import ORDER_ID, response_body
from services.common.vault import Vault
from services.order.access import find_order
from services.order.bodies import UNKNOWN, OrderId
from services.shop.order_story import Source, StoryEvent, read_order_story
from shared.envelope import rfc3339
from shared.http.calls import Authenticated
from shared.http.responses import answer_list
from shared.service import Runtime

SEALED = "recipient"
EXAMPLE = {
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


class TimelineEvent(BaseModel):
    model_config = response_body(EXAMPLE)

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
    model_config = response_body({"items": [EXAMPLE]})

    items: list[TimelineEvent]


def router(runtimes: Sequence[Runtime]) -> APIRouter:
    routes = APIRouter(tags=["order"])
    by_category = {runtime.service.decider.category: runtime for runtime in runtimes}

    sources = {category: Source(it.store, it.decoder.decode) for category, it in by_category.items()}
    orders = by_category["order"]
    vault = Vault(orders.pool, orders.settings)

    @routes.get(
        "/v1/orders/{order_id}/events",
        response_model=Timeline,
        summary="The timeline of an order across services",
        responses=UNKNOWN,
    )
    async def events(order_id: OrderId, call: Authenticated) -> Response:
        await find_order(orders, call, order_id)
        story = await read_order_story(sources, str(order_id))
        return answer_list({"items": [await _document(vault, by_category[it.category], it) for it in story]})

    return routes


async def _document(vault: Vault, runtime: Runtime, it: StoryEvent) -> dict[str, Any]:
    event, data = it.recorded, asdict(it.event)
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
