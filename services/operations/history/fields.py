"""What is to be seen of a state or an event: plain fields in the shop's words, the same for tables, JSON and diffs."""

import re
from collections.abc import Mapping
from dataclasses import fields, is_dataclass
from typing import Any

from services.catalog.reservations import Reservations
from services.catalog.shelf import Shelf
from shared.envelope import from_millis
from shared.money import Money

Portrait = dict[str, Any]
"""By field: text, number, moment, money, a list of them, or a portrait in its turn."""

SEALED = "(sealed)"
PERSONAL = {"recipient"}
MOMENTS = {"at", "active_at", "held_at", "idle_since"}  # unix milliseconds
WITHIN = {"order", "charge", "shelf"}  # fields that are the state's own, kept one level down


def of_state(state: Any, initial: Any, order_id: str | None = None) -> Portrait:
    """`order_id`: of a product's reservations that order's alone. A hot product has tens of thousands."""
    status = None if type(state) is type(initial) else in_words(type(state).__name__)
    return {"status": status} | _fields(state, order_id)


def of_event(event: Any) -> Portrait:
    """What it says; of a record that today's code has no class for, too."""
    shown: Portrait = _seen("", event, None)
    return shown


def in_words(name: str) -> str:
    """`CheckedOut` -> `checked_out`."""
    return re.sub(r"(?<!^)(?=[A-Z])", "_", name).lower()


def _fields(it: Any, order_id: str | None) -> Portrait:
    shown: Portrait = {}
    for name, value in _named(it):
        if isinstance(value, Shelf):
            shown |= _shelf(value, order_id)
        elif name in WITHIN and not isinstance(value, str):
            shown |= _fields(value, order_id)
        else:
            shown[name] = SEALED if name in PERSONAL else _seen(name, value, order_id)
    return shown


def _seen(name: str, value: Any, order_id: str | None) -> Any:
    if name in MOMENTS and isinstance(value, int):
        return from_millis(value)
    if isinstance(value, Money):
        return value
    if isinstance(value, Mapping):
        return {str(key): SEALED if key in PERSONAL else _seen(key, inner, order_id) for key, inner in value.items()}
    if is_dataclass(value) or hasattr(value, "_fields"):
        return _fields(value, order_id)
    if isinstance(value, frozenset):
        return sorted(value)
    if isinstance(value, tuple | list):
        return _items(value, order_id)
    return value


def _items(values: tuple[Any, ...] | list[Any], order_id: str | None) -> Any:
    """Lines are known by their SKU, not by their place."""
    if values and all(hasattr(value, "sku") for value in values):
        return {value.sku: _fields(value, order_id) for value in values}
    return [_seen("", value, order_id) for value in values]


def _shelf(shelf: Shelf, order_id: str | None) -> Portrait:
    return {
        "available": shelf.available,
        "reserved": shelf.reserved,
        "sold": shelf.sold,
        "supplied": shelf.supplied,
        "orders": _reservations(shelf.orders, order_id),
    }


def _reservations(orders: Reservations, order_id: str | None) -> dict[str, str]:
    """Who holds pieces; of an order that was asked for, also that it has bought or given them back."""
    if order_id is not None:
        pieces = orders.pieces(order_id)
        return {} if pieces is None else {order_id: _pieces(pieces)}
    known = {**orders.held, **orders.recent}
    return {holder: _pieces(pieces) for holder, pieces in known.items() if pieces > 0}


def _pieces(pieces: int) -> str:
    return f"holds {pieces}" if pieces > 0 else f"bought {-pieces}" if pieces else "holds none"


def _named(it: Any) -> list[tuple[str, Any]]:
    names = it._fields if hasattr(it, "_fields") else [field.name for field in fields(it)]
    return [(name, getattr(it, name)) for name in names]
