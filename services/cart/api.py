"""Carts over HTTP. Prices and names are the server's; a cart of somebody else is as good as none."""

from collections.abc import Iterable
from datetime import datetime
from typing import Annotated, Any, Literal
from uuid import NAMESPACE_URL, UUID, uuid5

import orjson
from fastapi import APIRouter, Query, Response
from pydantic import BaseModel, ConfigDict, Field
from uuid_utils import uuid7

from services.cart.commands import AddItem, CheckOut, OpenCart, RemoveItem, SetQuantity
from services.cart.decider import Abandoned, Cart, CheckedOut, Empty, Open, total
from services.cart.events import Line
from services.cart.products import Products
from shared.cards import has_card_number
from shared.envelope import millis, now
from shared.errors import Refused
from shared.handler import Handled
from shared.http.calls import Authenticated, Call, Position, answer_read
from shared.http.models import Price, Sku
from shared.http.problems import Problem
from shared.http.routes import LeanRoute
from shared.money import Money
from shared.service import Runtime
from shared.timetravel import AsOf, as_of
from shared.vault import Vault

STATUSES = {
    "cart-unknown": 404,
    "version-unknown": 404,
    "line-unknown": 404,
    "product-unknown": 404,
    "quantity-out-of-range": 422,
    "position-unknown": 400,
}
STATUS = {Open: "open", CheckedOut: "checked_out", Abandoned: "abandoned"}


class NewItem(BaseModel):
    model_config = ConfigDict(json_schema_extra={"examples": [{"sku": "MUG-350", "quantity": 2}]})

    sku: Annotated[str, Field(max_length=60, pattern=r"^[\x21-\x7e]+$")]
    quantity: Annotated[int, Field(ge=1, le=99)]


class Quantity(BaseModel):
    quantity: Annotated[int, Field(ge=1, le=99)]


class Shipping(BaseModel):
    method: Literal["standard", "express"] = "standard"
    name: Annotated[str, Field(min_length=1, max_length=200)]
    address: Annotated[str, Field(min_length=1, max_length=500)]


class Checkout(BaseModel):
    payment_token: Annotated[str, Field(pattern=r"^tok_[a-z0-9_]{1,60}$", examples=["tok_ok"])]
    shipping: Shipping


class LineView(BaseModel):
    sku: str
    name: str
    quantity: int
    unit_price: Price


class CartView(BaseModel):
    cart_id: str
    customer_id: str
    status: Literal["open", "checked_out", "abandoned"]
    version: int
    lines: list[LineView]
    total: Price


class OrderAccepted(BaseModel):
    order_id: str


def order_of(cart_id: str) -> str:
    """Derived, so that a checkout tried again can only ever be the same order."""
    return str(uuid5(NAMESPACE_URL, f"till-roll:order-of-cart:{cart_id}"))


def router(runtime: Runtime) -> APIRouter:
    routes = APIRouter(tags=["cart"], route_class=LeanRoute)
    handler, settings = runtime.handler, runtime.settings
    products, vault = Products(runtime.pool), Vault(runtime.pool, settings)
    runtime.beside_api.append(products.follow())

    def rendered(handled: Handled[Cart, Any]) -> dict[str, Any]:
        cart = handled.state
        assert not isinstance(cart, Empty)
        lines = list(cart.lines.values())
        return {
            "cart_id": handled.stream_id.removeprefix("cart:"),
            "customer_id": cart.customer_id,
            "status": STATUS[type(cart)],
            "version": handled.version,
            "lines": [_line(line) for line in lines],
            "total": _money(total(lines) if lines else Money(0, settings.currency)),
        }

    async def reached(position: Position) -> bool:
        category, _, key = position.stream_id.partition(":")
        if category == "stock":
            return await products.version(key) >= position.version
        return (await handler.state(position.stream_id)).version >= position.version

    @routes.post("/v1/carts", status_code=201, response_model=CartView, summary="Open a cart")
    async def open_cart(call: Authenticated) -> Response:
        cart_id = str(uuid7())
        command = OpenCart(call.principal.subject, millis(now()))
        return await call.perform(handler, f"cart:{cart_id}", command, rendered, 201, f"/v1/carts/{cart_id}")

    @routes.get("/v1/carts/{cart_id}", response_model=CartView, summary="A cart as it is, or as it was")
    async def cart(
        cart_id: UUID,
        call: Authenticated,
        version: Annotated[int | None, Query(ge=1, description="As it was at this version.")] = None,
        at: Annotated[datetime | None, Query(description="As it was at this moment (RFC 3339).")] = None,
    ) -> Response:
        await call.wait_for(reached)
        stream_id = f"cart:{cart_id}"
        handled = (
            await as_of(runtime, stream_id, AsOf(version, at)) if version or at else await handler.state(stream_id)
        )
        if isinstance(handled.state, Empty) or not _may_see(call, handled.state):
            raise Refused("cart-unknown", "There is no such cart.")
        return answer_read(handled, rendered(handled))

    @routes.post("/v1/carts/{cart_id}/items", response_model=CartView, summary="Add a product")
    async def add_item(cart_id: UUID, item: NewItem, call: Authenticated) -> Response:
        await call.wait_for(reached)
        product = await products.find(item.sku)
        command = AddItem(call.principal.subject, item.sku, item.quantity, product, millis(now()))
        return await call.perform(handler, f"cart:{cart_id}", command, rendered)

    @routes.put("/v1/carts/{cart_id}/items/{sku}", response_model=CartView, summary="Set a quantity")
    async def set_quantity(cart_id: UUID, sku: Sku, quantity: Quantity, call: Authenticated) -> Response:
        await call.wait_for(reached)
        product = await products.find(sku)
        command = SetQuantity(call.principal.subject, sku, quantity.quantity, product, millis(now()))
        return await call.perform(handler, f"cart:{cart_id}", command, rendered)

    @routes.delete("/v1/carts/{cart_id}/items/{sku}", response_model=CartView, summary="Remove a product")
    async def remove_item(cart_id: UUID, sku: Sku, call: Authenticated) -> Response:
        command = RemoveItem(call.principal.subject, sku, millis(now()))
        return await call.perform(handler, f"cart:{cart_id}", command, rendered)

    @routes.post(
        "/v1/carts/{cart_id}/checkout",
        status_code=202,
        response_model=OrderAccepted,
        summary="Buy what is in it",
    )
    async def check_out(cart_id: UUID, checkout: Checkout, call: Authenticated) -> Response:
        await call.wait_for(reached)
        if has_card_number(checkout.model_dump()):
            raise Problem(422, "card-number", "This looks like a card number. Send the token it was exchanged for.")
        customer_id, order_id = call.principal.subject, order_of(str(cart_id))
        state = (await handler.state(f"cart:{cart_id}")).state
        skus: Iterable[str] = state.lines if isinstance(state, Open) else ()
        person = orjson.dumps({"name": checkout.shipping.name, "address": checkout.shipping.address}).decode()
        command = CheckOut(
            customer_id,
            order_id,
            await products.find_all(skus),
            checkout.payment_token,
            checkout.shipping.method,
            await vault.seal(customer_id, person),
        )
        return await call.perform(
            handler,
            f"cart:{cart_id}",
            command,
            lambda _: {"order_id": order_id},
            202,
            f"/v1/orders/{order_id}",
        )

    return routes


def _may_see(call: Call, cart: Open | CheckedOut | Abandoned) -> bool:
    return cart.customer_id == call.principal.subject or "support" in call.principal.roles


def _line(line: Line) -> dict[str, Any]:
    return {
        "sku": line.sku,
        "name": line.name,
        "quantity": line.quantity,
        "unit_price": _money(line.unit_price),
    }


def _money(money: Money) -> dict[str, Any]:
    return {"amount": money.amount, "currency": money.currency}
