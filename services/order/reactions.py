"""What an order makes of the events of others: cart, stock and payment, each known by its schema alone."""

from collections.abc import Mapping
from typing import Any

from services.order.commands import (
    Command,
    PlaceOrder,
    RecordPaymentAuthorized,
    RecordPaymentDeclined,
    RecordPaymentHeld,
    RecordPaymentRefunded,
    RecordStockRejected,
    RecordStockReserved,
)
from services.order.events import Line
from shared.money import Money


def react(event_type: str, data: Mapping[str, Any], stream_id: str, now: int) -> list[tuple[str, Command]]:
    """The streams that the event concerns, and what to ask of each."""
    command = _command(event_type, data, stream_id, now)
    return [(f"order:{data['order_id']}", command)] if command else []


def _command(event_type: str, data: Mapping[str, Any], stream_id: str, now: int) -> Command | None:
    match event_type:
        case "CartCheckedOut":
            return _place(data, stream_id.removeprefix("cart:"), now)
        case "StockReserved":
            return RecordStockReserved(data["sku"])
        case "StockRejected":
            return RecordStockRejected(data["sku"])
        case "PaymentHeldForReview":
            return RecordPaymentHeld(now)
        case "PaymentAuthorized":
            return RecordPaymentAuthorized()
        case "PaymentDeclined":
            return RecordPaymentDeclined(data["declined_by"])
        case "CaptureDeclined":
            return RecordPaymentDeclined("provider")
        case "PaymentRefunded":
            return RecordPaymentRefunded()
        case _:
            return None


def _place(checked_out: Mapping[str, Any], cart_id: str, now: int) -> PlaceOrder:
    return PlaceOrder(
        order_id=checked_out["order_id"],
        cart_id=cart_id,
        customer_id=checked_out["customer_id"],
        lines=tuple(_line(line) for line in checked_out["lines"]),
        total=Money(**checked_out["total"]),
        payment_token=checked_out["payment_token"],
        shipping_method=checked_out["shipping_method"],
        recipient=checked_out["recipient"],
        now=now,
    )


def _line(line: Mapping[str, Any]) -> Line:
    return Line(line["sku"], line["name"], line["quantity"], Money(**line["unit_price"]))
