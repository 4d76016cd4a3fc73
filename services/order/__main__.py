"""Runs the order service as a process of its own: `python -m services.order [all|api|worker]`."""

from services.order.settings import OrderSettings
from services.order.wiring import order
from shared.process import main

main(
    "Till Roll: order",
    OrderSettings,
    lambda settings: [order(settings)],
    address=lambda settings: (settings.shop_host, settings.order_port),
)
