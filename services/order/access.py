"""Finds an order for the caller of a request: customers find their own orders, support finds all."""

from functools import partial
from uuid import UUID

from services.common.roles import may_see
from services.order.decider import Order, Unplaced
from services.order.events import OrderPlaced
from shared.decider import Versioned
from shared.errors import Refused
from shared.http.calls import Call
from shared.http.positions import Position, is_stored
from shared.service import Runtime


async def find_order(runtime: Runtime, call: Call, order_id: UUID) -> Versioned[Order]:
    """Returns the current order. It waits a moment for an order whose checkout is not processed yet.

    The order of someone else is refused like one that does not exist, and takes as long.
    """
    stream_id = f"order:{order_id}"

    async def look() -> tuple[Versioned[Order], OrderPlaced] | None:
        found = await runtime.handler.state(stream_id)
        if isinstance(found.state, Unplaced) or not may_see(call.principal, found.state.order.customer_id):
            return None
        return found, found.state.order

    async def is_placed(_checkout: Position) -> bool:
        return True  # otherwise the order would not have been found

    if not (found := await call.find(look, "order", "cart")):
        raise Refused("order-unknown", "There is no such order.")
    if not call.min_position:
        return found[0]
    await call.wait_for({stream_id: partial(is_stored, runtime.handler), f"cart:{found[1].cart_id}": is_placed})
    return await runtime.handler.state(stream_id)
