"""What is said of orders over HTTP: the JSON that is answered, with examples."""

from typing import Annotated, Any, Literal
from uuid import UUID

import orjson
from fastapi import Path
from fastapi.responses import StreamingResponse
from pydantic import BaseModel, Field

from shared.http.examples import CART_ID, CUSTOMER_ID, LINE, ORDER_ID, PAYMENT_ID, TOTAL, like
from shared.http.models import LineView, Price
from shared.http.openapi import refusal

OrderId = Annotated[UUID, Path(examples=[ORDER_ID])]
UNKNOWN = refusal(404, "order-unknown", "There is no such order, or it is somebody else's.")
CONFIRMED = refusal(409, "order-confirmed", "This order is confirmed. Ask support to cancel it.")
ORDER = {
    "order_id": ORDER_ID,
    "cart_id": CART_ID,
    "customer_id": CUSTOMER_ID,
    "status": "cancelled",
    "reason": "payment_declined",
    "lines": [LINE],
    "total": TOTAL,
    "payment_id": PAYMENT_ID,
    "version": 4,
}
SHIPPING = {"method": "standard", "name": "Ann Example", "address": "1 Mill Lane, Oldtown", "erased": False}


class OrderView(BaseModel):
    model_config = like(ORDER)

    order_id: str
    cart_id: str
    customer_id: str
    status: Literal["placed", "reserved", "in_review", "confirmed", "cancelled"]
    reason: str | None
    lines: list[LineView]
    total: Price
    payment_id: str | None
    version: int


class Shipping(BaseModel):
    model_config = like(SHIPPING)

    method: Literal["standard", "express"]
    name: str | None
    address: str | None
    erased: Annotated[bool, Field(description="The customer asked to be forgotten: name and address are gone.")]


class OrderDetails(OrderView):
    model_config = like(ORDER | {"shipping": SHIPPING})

    shipping: Shipping


class EventStream(StreamingResponse):
    media_type = "text/event-stream"


CHANGE = {
    "type": "object",
    "required": ["id", "event", "data"],
    "properties": {
        "id": {"type": "string", "description": "The version that led to it, for Last-Event-ID."},
        "event": {"const": "status"},
        "data": {"type": "string", "contentMediaType": "application/json", "description": "The order, as in lists."},
    },
}
EXAMPLE = {"id": "4", "event": "status", "data": orjson.dumps(ORDER).decode()}
STREAM: dict[int | str, dict[str, Any]] = {
    200: {"content": {"text/event-stream": {"itemSchema": CHANGE | {"examples": [EXAMPLE]}}}}
}
RESUME = {
    "name": "Last-Event-ID",
    "in": "header",
    "required": False,
    "description": "Go on after this event, as a browser does that was cut off.",
    "schema": {"type": "string", "pattern": "^[0-9]{1,9}$", "examples": ["1"]},
}


class OrderPage(BaseModel):
    model_config = like({"items": [ORDER], "next_cursor": f"1794816000000.{ORDER_ID}"})

    items: list[OrderView]
    next_cursor: str | None
