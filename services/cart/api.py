"""Carts over HTTP. Prices and names are the server's; a cart of somebody else is as good as none."""

from collections.abc import Iterable
from datetime import datetime
from typing import Annotated, Any
from uuid import NAMESPACE_URL, UUID, uuid5

from fastapi import APIRouter, Query, Response
from uuid_utils import uuid7

from services.cart.commands import AddItem, CheckOut, OpenCart, RemoveItem, SetQuantity
from services.cart.decider import Abandoned, Cart, CheckedOut, Empty, Open, total
from services.cart.models import (
    CHECKED_OUT,
    PRICE_CHANGED,
    UNKNOWN,
    CartId,
    CartView,
    Checkout,
    NewItem,
    OrderAccepted,
    Quantity,
)
from services.cart.products import Products
from shared.cards import has_card_number
from shared.envelope import millis, now
from shared.errors import Refused
from shared.handler import Handled
from shared.http.calls import Authenticated, Call, Position, answer_read
from shared.http.models import Sku, line_view, price_view
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
}
STATUS = {Open: "open", CheckedOut: "checked_out", Abandoned: "abandoned"}


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
            "lines": [line_view(line) for line in lines],
            "total": price_view(total(lines) if lines else Money(0, settings.currency)),
        }

    async def known(position: Position) -> bool:
        return await products.version(position.key) >= position.version

    async def stored(position: Position) -> bool:
        return (await handler.state(position.stream_id)).version >= position.version

    async def wait(call: Call, cart_id: UUID) -> None:
        """Until what Min-Position names is known here: of this cart, or of a product. Strangers do not get to wait."""
        if call.min_position:
            stream_id = f"cart:{cart_id}"
            cart = (await handler.state(stream_id)).state
            if isinstance(cart, Empty) or not call.principal.may_see(cart.customer_id):
                raise _unknown()
            await call.wait_for({stream_id: stored, "stock": known})

    @routes.post("/v1/carts", status_code=201, response_model=CartView, summary="Open a cart")
    async def open_cart(call: Authenticated) -> Response:
        cart_id = str(uuid7())
        command = OpenCart(call.principal.subject, millis(now()))
        return await call.perform(handler, f"cart:{cart_id}", command, rendered, 201, f"/v1/carts/{cart_id}")

    @routes.get(
        "/v1/carts/{cart_id}", response_model=CartView, summary="A cart as it is, or as it was", responses=UNKNOWN
    )
    async def cart(
        cart_id: CartId,
        call: Authenticated,
        version: Annotated[int | None, Query(ge=1, description="As it was at this version.")] = None,
        at: Annotated[datetime | None, Query(description="As it was at this moment (RFC 3339).")] = None,
    ) -> Response:
        await wait(call, cart_id)
        stream_id = f"cart:{cart_id}"
        handled = (
            await as_of(runtime, stream_id, AsOf(version, at)) if version or at else await handler.state(stream_id)
        )
        if isinstance(handled.state, Empty) or not call.principal.may_see(handled.state.customer_id):
            raise _unknown()
        return answer_read(handled, rendered(handled))

    @routes.post(
        "/v1/carts/{cart_id}/items", response_model=CartView, summary="Add a product", responses=UNKNOWN | CHECKED_OUT
    )
    async def add_item(cart_id: CartId, item: NewItem, call: Authenticated) -> Response:
        await wait(call, cart_id)
        product = await products.find(item.sku)
        command = AddItem(call.principal.subject, item.sku, item.quantity, product, millis(now()))
        return await call.perform(handler, f"cart:{cart_id}", command, rendered)

    @routes.put(
        "/v1/carts/{cart_id}/items/{sku}",
        response_model=CartView,
        summary="Set a quantity",
        responses=UNKNOWN | CHECKED_OUT,
    )
    async def set_quantity(cart_id: CartId, sku: Sku, quantity: Quantity, call: Authenticated) -> Response:
        await wait(call, cart_id)
        product = await products.find(sku)
        command = SetQuantity(call.principal.subject, sku, quantity.quantity, product, millis(now()))
        return await call.perform(handler, f"cart:{cart_id}", command, rendered)

    @routes.delete(
        "/v1/carts/{cart_id}/items/{sku}",
        response_model=CartView,
        summary="Remove a product",
        responses=UNKNOWN | CHECKED_OUT,
    )
    async def remove_item(cart_id: CartId, sku: Sku, call: Authenticated) -> Response:
        command = RemoveItem(call.principal.subject, sku, millis(now()))
        return await call.perform(handler, f"cart:{cart_id}", command, rendered)

    @routes.post(
        "/v1/carts/{cart_id}/checkout",
        status_code=202,
        response_model=OrderAccepted,
        summary="Buy what is in it",
        responses=UNKNOWN | PRICE_CHANGED,
    )
    async def check_out(cart_id: CartId, checkout: Checkout, call: Authenticated) -> Response:
        await wait(call, cart_id)
        if has_card_number(checkout.model_dump()):
            raise Problem(422, "card-number", "This looks like a card number. Send the token it was exchanged for.")
        customer_id, order_id = call.principal.subject, order_of(str(cart_id))
        state = (await handler.state(f"cart:{cart_id}")).state
        skus: Iterable[str] = state.lines if isinstance(state, Open) else ()
        person = {"name": checkout.shipping.name, "address": checkout.shipping.address}
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


def _unknown() -> Refused:
    return Refused("cart-unknown", "There is no such cart.")
