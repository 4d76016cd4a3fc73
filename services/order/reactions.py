"""The order as saga (process manager): turns events of cart, catalog and payment into commands to the order. Pure.

No central coordinator exists. Each service reacts to events (choreography), and the order's own stream remembers how
far the purchase has come. Reactions may be repeated or late; the decider handles both. The other services are
known by the schemas of their events alone.
"""

from collections.abc import Mapping
from typing import Any

from services.common.fields import carry
from services.common.money import Money
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
from shared.messaging.incoming import Incoming


def react(message: Incoming, at: int) -> list[tuple[str, Command]]:
    """Returns the commands that an event leads to, each with the stream it is for."""
    command = _command(message, message.data, at)
    return [(f"order:{message.data['order_id']}", command)] if command else []


def _command(message: Incoming, data: Mapping[str, Any], at: int) -> Command | None:
    match message.type:
        # Happy path: place the order, collect the reservations, wait for the payment.
        case "CartCheckedOut":
            return _place(data, message.stream_id.removeprefix("cart:"), at)
        case "StockReserved":
            return RecordStockReserved(data["sku"])
        case "PaymentHeldForReview":
            return RecordPaymentHeld(at)
        case "PaymentAuthorized":
            return RecordPaymentAuthorized()
        # Compensation: the order is cancelled, and OrderCancelled makes catalog and payment undo their part.
        case "StockRejected":
            return RecordStockRejected(data["sku"])
        case "PaymentDeclined":
            return RecordPaymentDeclined(data["declined_by"])
        case "CaptureDeclined":
            return RecordPaymentDeclined("provider")
        case "PaymentRefunded":
            return RecordPaymentRefunded()
        case _:
            return None


def _place(checked_out: Mapping[str, Any], cart_id: str, at: int) -> PlaceOrder:
    lines = tuple(_line(line) for line in checked_out["lines"])
    return carry(PlaceOrder, checked_out, cart_id=cart_id, lines=lines, total=Money(**checked_out["total"]), now=at)


def _line(line: Mapping[str, Any]) -> Line:
    return Line(line["sku"], line["name"], line["quantity"], Money(**line["unit_price"]))
