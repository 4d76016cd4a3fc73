"""What a payment makes of its order: asked for, confirmed, or cancelled. The order is known by its schema alone."""

from collections.abc import Callable, Mapping
from typing import Any

from services.payment.commands import CancelPayment, CapturePayment, Command, RequestPayment
from services.payment.risk import Verdict
from services.payment.velocity import Attempt
from shared.money import Money

Judge = Callable[[Attempt], Verdict]


def react(
    event_type: str, data: Mapping[str, Any], _stream_id: str, now: int, judge: Judge
) -> list[tuple[str, Command]]:
    """The streams that the event concerns, and what to ask of each."""
    command = _command(event_type, data, now, judge)
    return [(f"payment:{data['payment_id']}", command)] if command else []


def _command(event_type: str, data: Mapping[str, Any], now: int, judge: Judge) -> Command | None:
    match event_type:
        case "PaymentRequested":
            return _request(data, now, judge)
        case "OrderConfirmed":
            return CapturePayment()
        case "OrderCancelled" if data["payment_id"]:
            return CancelPayment(data["payment_id"], data["order_id"])
        case _:
            return None


def _request(requested: Mapping[str, Any], now: int, judge: Judge) -> RequestPayment:
    payment_id, customer_id = requested["payment_id"], requested["customer_id"]
    amount, token = Money(**requested["amount"]), requested["payment_token"]
    verdict = judge(Attempt(payment_id, customer_id, amount, token, now))
    return RequestPayment(payment_id, requested["order_id"], customer_id, amount, token, verdict)
