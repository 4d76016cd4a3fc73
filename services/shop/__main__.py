"""`python -m services.shop [all|api|worker]`: every service in one process, the local default."""

from services.cart.wiring import cart
from services.catalog.wiring import CATALOG
from services.shop import sessions
from shared.process import main

main(
    "Till Roll: the shop",
    lambda settings: [CATALOG, cart(settings)],
    port=lambda settings: settings.shop_port,
    routers=lambda settings: [sessions.router(settings)],
)
