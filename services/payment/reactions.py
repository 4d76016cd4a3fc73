"""Turns events of the order saga into payment commands: request, capture or cancel the payment.

Pure: the time and the risk check come in as arguments. The order service is known by the schemas of its events alone.
"""

from collections.abc import Callable, Mapping
from typing import Any

from services.common.money import Money
from services.payment.commands import CancelPayment, CapturePayment, Command, RequestPayment
from services.payment.risk import Verdict
from services.payment.velocity import Attempt
from shared.messaging.incoming import Incoming

Assess = Callable[[Attempt], Verdict]
"""Assesses the risk of a payment."""


def react(message: Incoming, at: int, assess: Assess) -> list[tuple[str, Command]]:
    """Returns the commands that an order's event leads to, each with the stream it is for."""
    command = _command(message.type, message.data, at, assess)
    return [(f"payment:{message.data['payment_id']}", command)] if command else []


def _command(event_type: str, data: Mapping[str, Any], at: int, assess: Assess) -> Command | None:
    match event_type:
        case "PaymentRequested":
            return _request(data, at, assess)
        case "OrderConfirmed":
            return CapturePayment()
        case "OrderCancelled" if data["payment_id"]:
            return CancelPayment(data["payment_id"], data["order_id"])
        case _:
            return None


def _request(requested: Mapping[str, Any], at: int, assess: Assess) -> RequestPayment:
    payment_id, customer_id = requested["payment_id"], requested["customer_id"]
    amount, token = Money(**requested["amount"]), requested["payment_token"]
    verdict = assess(Attempt(payment_id, customer_id, amount, token, at))
    return RequestPayment(payment_id, requested["order_id"], customer_id, amount, token, verdict)
