"""What is said of carts over HTTP: the JSON that is taken and answered, with examples."""

from typing import Annotated, Literal
from uuid import UUID

from fastapi import Path
from pydantic import BaseModel, Field

from shared.http.examples import CART_ID, CUSTOMER_ID, LINE, ORDER_ID, TOTAL, like, taken_like
from shared.http.models import LineView, Price
from shared.http.openapi import refusal

CartId = Annotated[UUID, Path(examples=[CART_ID])]
UNKNOWN = refusal(404, "cart-unknown", "There is no such cart, or it is somebody else's.")
CHECKED_OUT = refusal(409, "cart-checked-out", "This cart has been checked out. Open a new one to go on shopping.")
PRICE_CHANGED = refusal(
    409, "price-changed", "MUG-350 costs 12.90 EUR now, not 11.90 EUR. Set its quantity to accept the new price."
)
SHIPPING = {"method": "standard", "name": "Ann Example", "address": "1 Mill Lane, Oldtown"}


class NewItem(BaseModel):
    model_config = taken_like({"sku": "MUG-350", "quantity": 2})

    sku: Annotated[str, Field(max_length=60, pattern=r"^[\x21-\x7e]+$")]
    quantity: Annotated[int, Field(ge=1, le=99)]


class Quantity(BaseModel):
    model_config = taken_like({"quantity": 3})

    quantity: Annotated[int, Field(ge=1, le=99)]


class Shipping(BaseModel):
    model_config = taken_like(SHIPPING)

    method: Literal["standard", "express"] = "standard"
    name: Annotated[str, Field(min_length=1, max_length=200)]
    address: Annotated[str, Field(min_length=1, max_length=500)]


class Checkout(BaseModel):
    model_config = taken_like({"payment_token": "tok_ok", "shipping": SHIPPING})

    payment_token: Annotated[str, Field(pattern=r"^tok_[a-z0-9_]{1,60}$")]
    shipping: Shipping


class CartView(BaseModel):
    model_config = like(
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
    lines: list[LineView]
    total: Price


class OrderAccepted(BaseModel):
    model_config = like({"order_id": ORDER_ID})

    order_id: str
