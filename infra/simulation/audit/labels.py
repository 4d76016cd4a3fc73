"""Labels fraudulent orders: for simulated shoppers this is known, from the ledgers of simulations."""

from collections.abc import Iterable
from pathlib import Path

import orjson

FRAUD = frozenset(("card testing", "many accounts", "large basket"))
"""The fraudulent kinds of visits."""


def visits_of_orders(ledgers: Iterable[Path]) -> dict[str, str]:
    """Returns the kind of visit in which each order was placed."""
    visits: dict[str, str] = {}
    for ledger in ledgers:
        with ledger.open("rb") as lines:
            visits |= _visits_of_orders(lines)
    return visits


def _visits_of_orders(lines: Iterable[bytes]) -> dict[str, str]:
    current: dict[str, str] = {}
    by_cart: dict[str, str] = {}
    by_order: dict[str, str] = {}
    for line in lines:
        if not line.endswith(b"\n"):
            break  # the last line of a simulation that was killed
        match orjson.loads(line):
            case {"kind": "Came", "who": who, "visit": visit}:
                current[who] = visit
            case {"kind": "Answered", "who": who, "call": "POST /v1/carts/{cart_id}/checkout", "path": path}:
                by_cart[path.split("/")[3]] = current[who]
            case {"kind": "CheckedOut", "order_id": order, "cart_id": cart}:
                by_order[order] = by_cart[cart]
    return by_order
