"""Response bodies of the order API, with their examples, and the functions that make them of a state or a row."""

from typing import Annotated, Any, Literal
from uuid import UUID

import orjson
from fastapi import Path
from pydantic import BaseModel, Field

from services.common.bodies import LineBody, Price, body_of_row, line_body, price_body
from services.common.examples import CART_ID, CUSTOMER_ID, LINE, ORDER_ID, PAYMENT_ID, TOTAL, response_body
from services.common.money import Money
from services.order.decider import Cancelled, Confirmed, InReview, Order, Placed, Reserved, Unplaced
from shared.decider import Versioned
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
STATE_NAMES = {
    Placed: "placed",
    Reserved: "reserved",
    InReview: "in_review",
    Confirmed: "confirmed",
    Cancelled: "cancelled",
}
SHIPPING = {"method": "standard", "name": "Ann Example", "address": "1 Mill Lane, Oldtown", "erased": False}


class OrderBody(BaseModel):
    model_config = response_body(ORDER)

    order_id: str
    cart_id: str
    customer_id: str
    status: Literal["placed", "reserved", "in_review", "confirmed", "cancelled"]
    reason: str | None
    lines: list[LineBody]
    total: Price
    payment_id: str | None
    version: int


class Shipping(BaseModel):
    model_config = response_body(SHIPPING)

    method: Literal["standard", "express"]
    name: str | None
    address: str | None
    erased: Annotated[bool, Field(description="The customer asked to be forgotten: name and address are gone.")]


class OrderDetails(OrderBody):
    model_config = response_body(ORDER | {"shipping": SHIPPING})

    shipping: Shipping


class OrderPage(BaseModel):
    model_config = response_body({"items": [ORDER], "next_cursor": f"1794816000000.{ORDER_ID}"})

    items: list[OrderBody]
    next_cursor: str | None


def order_body(found: Versioned[Order]) -> dict[str, Any]:
    """Returns an `OrderBody` of the order's state."""
    order = found.state
    assert not isinstance(order, Unplaced)
    placed = order.order
    return {
        "order_id": placed.order_id,
        "cart_id": placed.cart_id,
        "customer_id": placed.customer_id,
        "status": STATE_NAMES[type(order)],
        "reason": order.reason if isinstance(order, Cancelled) else None,
        "lines": [line_body(line) for line in placed.lines],
        "total": price_body(placed.total),
        "payment_id": None if isinstance(order, Placed) else order.payment_id or None,
        "version": found.version,
    }


def order_body_of_row(row: Any) -> dict[str, Any]:
    """Returns an `OrderBody` of a row of the read model."""
    total = price_body(Money(row["total"], row["currency"]))
    return body_of_row(OrderBody, row, lines=orjson.loads(row["lines"]), total=total)
