"""What stock makes of an order: placed, it reserves each line; confirmed, it sells them; cancelled, it takes back."""

from collections.abc import Mapping
from typing import Any

from services.catalog.commands import Command, CommitStock, ReleaseStock, ReserveStock


def react(event_type: str, data: Mapping[str, Any], _stream_id: str, _now: int) -> list[tuple[str, Command]]:
    """The streams that the event concerns, and what to ask of each: a stream for each line."""
    if event_type not in ("OrderPlaced", "OrderConfirmed", "OrderCancelled"):
        return []
    return [(f"stock:{line['sku']}", _command(event_type, line, data)) for line in data["lines"]]


def _command(event_type: str, line: Mapping[str, Any], data: Mapping[str, Any]) -> Command:
    order_id = data["order_id"]
    match event_type:
        case "OrderPlaced":
            return ReserveStock(line["sku"], order_id, line["quantity"])
        case "OrderConfirmed":
            return CommitStock(line["sku"], order_id)
        case _:
            # The money is asked for once every line is reserved.
            return ReleaseStock(line["sku"], order_id, line["quantity"] if data["payment_id"] else 0)
