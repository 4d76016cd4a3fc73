"""`python -m services.payment [all|api|worker]`: the payment service as a process of its own."""

from services.payment.wiring import payment
from shared.process import main

main("Till Roll: payment", lambda settings: [payment(settings)], port=lambda settings: settings.payment_port)
