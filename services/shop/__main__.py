"""`python -m services.shop [all|api|worker]`: every service in one process, the local default."""

from services.cart.wiring import cart
from services.catalog.wiring import CATALOG
from services.order.wiring import order
from services.payment.wiring import payment
from services.shop import sessions, timeline
from shared.process import main

main(
    "Till Roll: the shop",
    lambda settings: [cart(settings), CATALOG, order(settings), payment(settings)],
    port=lambda settings: settings.shop_port,
    routers=lambda settings, runtimes: [sessions.router(settings), timeline.router(runtimes)],
)
