"""The shop with one more route, which does nothing: the reference of `till bench http`."""

from fastapi import APIRouter

from services.cart.wiring import cart
from services.catalog.wiring import CATALOG
from services.shop import sessions
from shared.process import main

nothing = APIRouter()


@nothing.post("/noop")
async def noop() -> dict[str, str]:
    return {}


if __name__ == "__main__":
    main(
        "The shop and nothing",
        lambda settings: [cart(settings), CATALOG],
        port=lambda settings: settings.shop_port,
        routers=lambda settings, _: [sessions.router(settings), nothing],
    )
