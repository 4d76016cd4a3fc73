"""`python -m services.cart [all|api|worker]`: the cart as a process of its own."""

from services.cart.wiring import cart
from shared.process import main

main("Till Roll: cart", lambda settings: [cart(settings)], port=lambda settings: settings.cart_port)
