"""Runs the cart service as a process of its own: `python -m services.cart [all|api|worker]`."""

from services.cart.settings import CartSettings
from services.cart.wiring import cart
from shared.process import main

main(
    "Till Roll: cart",
    CartSettings,
    lambda settings: [cart(settings)],
    address=lambda settings: (settings.shop_host, settings.cart_port),
)
