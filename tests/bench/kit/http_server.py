"""Runs the shop with two more routes that do nothing: the reference of `till bench http`."""

from uuid import UUID

from fastapi import APIRouter

from services.cart.bodies import NewItem
from services.cart.wiring import cart
from services.catalog.wiring import catalog
from services.shop import sessions
from services.shop.settings import ShopSettings
from shared.process import main

nothing = APIRouter()


@nothing.post("/noop")
async def noop() -> dict[str, str]:
    """Ignores even the body that is sent."""
    return {}


@nothing.post("/noop/{cart_id}/items")
async def noop_items(cart_id: UUID, item: NewItem) -> dict[str, str]:
    """Takes what `POST items` takes, by plain FastAPI, and does nothing with it."""
    return {}


if __name__ == "__main__":
    main(
        "The shop, and two routes that do nothing",
        ShopSettings,
        lambda settings: [cart(settings), catalog(settings)],
        address=lambda settings: (settings.shop_host, settings.shop_port),
        routers=lambda settings, _: [sessions.router(settings), nothing],
    )
