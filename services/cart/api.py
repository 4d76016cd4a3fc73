"""The cart API. Names and prices come from the server, and the cart of someone else is answered like a missing one."""

from collections.abc import Iterable
from datetime import datetime
from functools import partial
from typing import Annotated
from uuid import NAMESPACE_URL, UUID, uuid5

from fastapi import APIRouter, Query, Response
from uuid_utils import uuid7

from services.cart.bodies import (
    CHECKED_OUT,
    PRICE_CHANGED,
    UNKNOWN,
    CartBody,
    CartId,
    Checkout,
    NewItem,
    OrderAccepted,
    Quantity,
    cart_body,
)
from services.cart.commands import AddItem, CheckOut, OpenCart, RemoveItem, SetQuantity
from services.cart.decider import Empty, Open
from services.cart.products import ProductCache, Products
from services.common.bodies import Sku
from services.common.cards import refuse_card_numbers
from services.common.fields import carry
from services.common.roles import may_see
from services.common.vault import Vault
from shared.envelope import millis, now
from shared.errors import Refused
from shared.http.calls import Authenticated, Call
from shared.http.positions import Position, is_stored
from shared.http.responses import answer_read
from shared.service import Runtime
from shared.store.time_travel import AsOf, as_of

REFUSAL_STATUSES = {
    "cart-unknown": 404,
    "version-unknown": 404,
    "line-unknown": 404,
    "product-unknown": 404,
    "quantity-out-of-range": 422,
}


def order_of(cart_id: str) -> str:
    """Derives the order's id from the cart's, so that a repeated checkout leads to the same order."""
    return str(uuid5(NAMESPACE_URL, f"till-roll:order-of-cart:{cart_id}"))


def router(runtime: Runtime, cache: ProductCache, currency: str) -> APIRouter:
    routes = APIRouter(tags=["cart"])
    handler, settings = runtime.handler, runtime.settings
    products, vault = Products(runtime.pool, cache), Vault(runtime.pool, settings)

    render = partial(cart_body, currency=currency)

    async def is_known(position: Position) -> bool:
        return await products.version(position.key) >= position.version

    async def wait(call: Call, cart_id: UUID) -> None:
        """Waits for Min-Position, which may name this cart or a product. A stranger is refused without waiting."""
        if call.min_position:
            stream_id = f"cart:{cart_id}"
            cart = (await handler.state(stream_id)).state
            if isinstance(cart, Empty) or not may_see(call.principal, cart.customer_id):
                raise _unknown()
            await call.wait_for({stream_id: partial(is_stored, handler), "stock": is_known})

    @routes.post("/v1/carts", status_code=201, response_model=CartBody, summary="Open a cart")
    async def open_cart(call: Authenticated) -> Response:
        cart_id = str(uuid7())
        command = OpenCart(call.principal.subject, millis(now()))
        return await call.perform(handler, f"cart:{cart_id}", command, render, 201, f"/v1/carts/{cart_id}")

    @routes.get(
        "/v1/carts/{cart_id}", response_model=CartBody, summary="A cart as it is, or as it was", responses=UNKNOWN
    )
    async def cart(
        cart_id: CartId,
        call: Authenticated,
        version: Annotated[int | None, Query(ge=1, description="As it was at this version.")] = None,
        at: Annotated[datetime | None, Query(description="As it was at this moment (RFC 3339).")] = None,
    ) -> Response:
        await wait(call, cart_id)
        stream_id = f"cart:{cart_id}"
        is_past = version or at
        found = await (as_of(runtime, stream_id, AsOf(version, at)) if is_past else handler.state(stream_id))
        if isinstance(found.state, Empty) or not may_see(call.principal, found.state.customer_id):
            raise _unknown()
        return answer_read(found, render(found))

    @routes.post(
        "/v1/carts/{cart_id}/items", response_model=CartBody, summary="Add a product", responses=UNKNOWN | CHECKED_OUT
    )
    async def add_item(cart_id: CartId, item: NewItem, call: Authenticated) -> Response:
        await wait(call, cart_id)
        product = await products.find(item.sku)
        command = AddItem(call.principal.subject, item.sku, item.quantity, product, millis(now()))
        return await call.perform(handler, f"cart:{cart_id}", command, render)

    @routes.put(
        "/v1/carts/{cart_id}/items/{sku}",
        response_model=CartBody,
        summary="Set a quantity",
        responses=UNKNOWN | CHECKED_OUT,
    )
    async def set_quantity(cart_id: CartId, sku: Sku, quantity: Quantity, call: Authenticated) -> Response:
        await wait(call, cart_id)
        product = await products.find(sku)
        command = SetQuantity(call.principal.subject, sku, quantity.quantity, product, millis(now()))
        return await call.perform(handler, f"cart:{cart_id}", command, render)

    @routes.delete(
        "/v1/carts/{cart_id}/items/{sku}",
        response_model=CartBody,
        summary="Remove a product",
        responses=UNKNOWN | CHECKED_OUT,
    )
    async def remove_item(cart_id: CartId, sku: Sku, call: Authenticated) -> Response:
        await wait(call, cart_id)
        command = RemoveItem(call.principal.subject, sku, millis(now()))
        return await call.perform(handler, f"cart:{cart_id}", command, render)

    @routes.post(
        "/v1/carts/{cart_id}/checkout",
        status_code=202,
        response_model=OrderAccepted,
        summary="Check out",
        responses=UNKNOWN | PRICE_CHANGED,
    )
    async def check_out(cart_id: CartId, checkout: Checkout, call: Authenticated) -> Response:
        await wait(call, cart_id)
        refuse_card_numbers(checkout.model_dump())
        customer_id, order_id = call.principal.subject, order_of(str(cart_id))
        state = (await handler.state(f"cart:{cart_id}")).state
        skus: Iterable[str] = state.lines if isinstance(state, Open) else ()
        person = {"name": checkout.shipping.name, "address": checkout.shipping.address}
        command = carry(
            CheckOut,
            checkout,
            customer_id=customer_id,
            order_id=order_id,
            products=await products.find_all(skus),
            shipping_method=checkout.shipping.method,
            recipient=await vault.seal(customer_id, person),
        )
        accepted, location = {"order_id": order_id}, f"/v1/orders/{order_id}"
        return await call.perform(handler, f"cart:{cart_id}", command, lambda _: accepted, 202, location)

    return routes


def _unknown() -> Refused:
    return Refused("cart-unknown", "There is no such cart.")
