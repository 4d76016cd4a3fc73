"""Request and response bodies of the cart API, with their examples."""

from typing import Annotated, Any, Literal
from uuid import UUID

from fastapi import Path
from pydantic import BaseModel, Field

from services.cart.decider import Abandoned, Cart, CheckedOut, Empty, Open, total
from services.common.bodies import LineBody, Price, line_body, price_body
from services.common.examples import CART_ID, CUSTOMER_ID, LINE, ORDER_ID, TOTAL, request_body, response_body
from services.common.money import Money
from shared.decider import Versioned
from shared.http.openapi import refusal

CartId = Annotated[UUID, Path(examples=[CART_ID])]
UNKNOWN = refusal(404, "cart-unknown", "There is no such cart, or it is somebody else's.")
CHECKED_OUT = refusal(409, "cart-checked-out", "This cart has been checked out. Open a new one to go on shopping.")
PRICE_CHANGED = refusal(
    409,
    "price-changed",
    "Enamel mug 350 ml (MUG-350) costs 12.90 EUR, no longer 11.90 EUR."
    " Set the quantity again to take the new price, or remove it.",
)
STATE_NAMES = {Open: "open", CheckedOut: "checked_out", Abandoned: "abandoned"}
SHIPPING = {"method": "standard", "name": "Ann Example", "address": "1 Mill Lane, Oldtown"}


class NewItem(BaseModel):
    model_config = request_body({"sku": "MUG-350", "quantity": 2})

    sku: Annotated[str, Field(max_length=60, pattern=r"^[\x21-\x7e]+$")]
    quantity: Annotated[int, Field(ge=1, le=99)]


class Quantity(BaseModel):
    model_config = request_body({"quantity": 3})

    quantity: Annotated[int, Field(ge=1, le=99)]


class Shipping(BaseModel):
    model_config = request_body(SHIPPING)

    method: Literal["standard", "express"] = "standard"
    name: Annotated[str, Field(min_length=1, max_length=200)]
    address: Annotated[str, Field(min_length=1, max_length=500)]


class Checkout(BaseModel):
    model_config = request_body({"payment_token": "tok_ok", "shipping": SHIPPING})

    payment_token: Annotated[str, Field(pattern=r"^tok_[a-z0-9_]{1,60}$")]
    shipping: Shipping


class CartBody(BaseModel):
    model_config = response_body(
        {
            "cart_id": CART_ID,
            "customer_id": CUSTOMER_ID,
            "status": "open",
            "version": 2,
            "lines": [LINE],
            "total": TOTAL,
        }
    )

    cart_id: str
    customer_id: str
    status: Literal["open", "checked_out", "abandoned"]
    version: int
    lines: list[LineBody]
    total: Price


class OrderAccepted(BaseModel):
    model_config = response_body({"order_id": ORDER_ID})

    order_id: str


def cart_body(found: Versioned[Cart], currency: str) -> dict[str, Any]:
    """Returns a `CartBody` of the cart's state. The total of an empty cart is shown in `currency`."""
    cart = found.state
    assert not isinstance(cart, Empty)
    lines = list(cart.lines.values())
    return {
        "cart_id": found.stream_id.removeprefix("cart:"),
        "customer_id": cart.customer_id,
        "status": STATE_NAMES[type(cart)],
        "version": found.version,
        "lines": [line_body(line) for line in lines],
        "total": price_body(total(lines) if lines else Money(0, currency)),
    }
