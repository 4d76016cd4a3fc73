"""Turns events of the order saga into stock commands: reserve each line, sell it, or take it back."""

from collections.abc import Mapping
from typing import Any

from services.catalog.commands import Command, CommitStock, ReleaseStock, ReserveStock
from shared.messaging.incoming import Incoming


def react(message: Incoming, _at: int) -> list[tuple[str, Command]]:
    """Returns the commands that an order's event leads to: one per line, to the stock stream of its SKU."""
    if message.type not in ("OrderPlaced", "OrderConfirmed", "OrderCancelled"):
        return []
    return [(f"stock:{line['sku']}", _command(message.type, line, message.data)) for line in message.data["lines"]]


def _command(event_type: str, line: Mapping[str, Any], data: Mapping[str, Any]) -> Command:
    order_id = data["order_id"]
    match event_type:
        case "OrderPlaced":
            return ReserveStock(line["sku"], order_id, line["quantity"])
        case "OrderConfirmed":
            return CommitStock(line["sku"], order_id)
        case _:
            # A payment exists only after every line was reserved.
            return ReleaseStock(line["sku"], order_id, line["quantity"] if data["payment_id"] else 0)
