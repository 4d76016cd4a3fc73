"""Turns states and events into plain fields in the shop's words, the same for tables, JSON and diffs."""

import re
from collections.abc import Mapping
from dataclasses import fields, is_dataclass
from typing import Any

from services.catalog.reservations import Bought, Held, Reservation, Reservations, Undone
from services.catalog.shelf import Shelf
from services.common.money import Money
from shared.envelope import from_millis

Fields = dict[str, Any]
"""Values by name: a text, number, moment or money, a list of them, or nested fields."""

SEALED = "(sealed)"
PERSONAL = {"recipient"}
"""Fields of events and states that are encrypted with the key of a customer."""
MOMENTS = {"at", "active_at", "held_at", "idle_since"}  # unix milliseconds
INLINED = {"order", "charge", "shelf"}  # shown as fields of the state itself, not one level down


def state_fields(state: Any, initial: Any, order_id: str | None = None) -> Fields:
    """Returns the fields of a state. With `order_id`, a product shows that order's reservation alone: it may have tens
    of thousands.
    """
    status = None if type(state) is type(initial) else snake_case(type(state).__name__)
    return {"status": status} | _fields(state, order_id)


def event_fields(event: Any) -> Fields:
    """Returns the fields of an event, or of a record that today's code has no class for."""
    shown: Fields = _plain("", event, None)
    return shown


def snake_case(name: str) -> str:
    """Turns `CheckedOut` into `checked_out`."""
    return re.sub(r"(?<!^)(?=[A-Z])", "_", name).lower()


def _fields(it: Any, order_id: str | None) -> Fields:
    shown: Fields = {}
    for name, value in _named(it):
        if isinstance(value, Shelf):
            shown |= _shelf(value, order_id)
        elif name in INLINED and not isinstance(value, str):
            shown |= _fields(value, order_id)
        else:
            shown[name] = SEALED if name in PERSONAL else _plain(name, value, order_id)
    return shown


def _plain(name: str, value: Any, order_id: str | None) -> Any:
    if name in MOMENTS and isinstance(value, int):
        return from_millis(value)
    if isinstance(value, Money):
        return value
    if isinstance(value, Mapping):
        return {str(key): SEALED if key in PERSONAL else _plain(key, inner, order_id) for key, inner in value.items()}
    if is_dataclass(value) or hasattr(value, "_fields"):
        return _fields(value, order_id)
    if isinstance(value, frozenset):
        return sorted(value)
    if isinstance(value, tuple | list):
        return _items(value, order_id)
    return value


def _items(values: tuple[Any, ...] | list[Any], order_id: str | None) -> Any:
    """Returns lines by SKU, since their place in the list means nothing; other values as a list."""
    if values and all(hasattr(value, "sku") for value in values):
        return {value.sku: _fields(value, order_id) for value in values}
    return [_plain("", value, order_id) for value in values]


def _shelf(shelf: Shelf, order_id: str | None) -> Fields:
    return {
        "available": shelf.available,
        "reserved": shelf.reserved,
        "sold": shelf.sold,
        "supplied": shelf.supplied,
        "orders": _reservations(shelf.orders, order_id),
    }


def _reservations(orders: Reservations, order_id: str | None) -> dict[str, str]:
    """Returns the orders that hold pieces; for one given order, also whether it bought them or gave them back."""
    if order_id is not None:
        found = orders.of(order_id)
        return {} if found is None else {order_id: _reservation(found)}
    return {holder: f"holds {pieces}" for holder, pieces in orders.holders()}


def _reservation(reservation: Reservation) -> str:
    match reservation:
        case Held(pieces):
            return f"holds {pieces}"
        case Bought(pieces):
            return f"bought {pieces}"
        case Undone():
            return "holds none"


def _named(it: Any) -> list[tuple[str, Any]]:
    names = it._fields if hasattr(it, "_fields") else [field.name for field in fields(it)]
    return [(name, getattr(it, name)) for name in names]
