"""The shop with one more route, which does nothing: the reference of `till bench http`."""

from uuid import UUID

from fastapi import APIRouter

from services.cart.models import NewItem
from services.cart.wiring import cart
from services.catalog.wiring import CATALOG
from services.shop import sessions
from shared.process import main

nothing = APIRouter()


@nothing.post("/noop")
async def noop() -> dict[str, str]:
    """Takes nothing, not even the body that is sent."""
    return {}


@nothing.post("/noop/{cart_id}/items")
async def noop_items(cart_id: UUID, item: NewItem) -> dict[str, str]:
    """Takes what `POST items` takes, the FastAPI way, and does nothing with it."""
    return {}


if __name__ == "__main__":
    main(
        "The shop and nothing",
        lambda settings: [cart(settings), CATALOG],
        port=lambda settings: settings.shop_port,
        routers=lambda settings, _: [sessions.router(settings), nothing],
    )
