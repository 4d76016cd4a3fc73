"""`python -m services.order [all|api|worker]`: the order service as a process of its own."""

from services.order.wiring import order
from shared.process import main

main("Till Roll: order", lambda settings: [order(settings)], port=lambda settings: settings.order_port)
