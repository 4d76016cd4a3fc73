"""Runs the payment service as a process of its own: `python -m services.payment [all|api|worker]`."""

from services.payment.settings import PaymentSettings
from services.payment.wiring import payment
from shared.process import main

main(
    "Till Roll: payment",
    PaymentSettings,
    lambda settings: [payment(settings)],
    address=lambda settings: (settings.shop_host, settings.payment_port),
)
