"""Who meant no good: of simulated shoppers it is known, from the ledgers of simulations."""

from collections.abc import Iterable
from pathlib import Path

import orjson

FRAUD = frozenset(("card testing", "many accounts", "large basket"))
"""Kinds of visits."""


def visits_of_orders(ledgers: Iterable[Path]) -> dict[str, str]:
    """The kind of visit in which each order was made."""
    visits: dict[str, str] = {}
    for ledger in ledgers:
        with ledger.open("rb") as lines:
            visits |= _visits_of_orders(lines)
    return visits


def _visits_of_orders(lines: Iterable[bytes]) -> dict[str, str]:
    pays: dict[str, str] = {}
    by_cart: dict[str, str] = {}
    by_order: dict[str, str] = {}
    for line in lines:
        if not line.endswith(b"\n"):
            break  # of a simulation that was killed
        match orjson.loads(line):
            case {"kind": "Came", "who": who, "visit": visit}:
                pays[who] = visit
            case {"kind": "Answered", "who": who, "call": "POST /v1/carts/{cart_id}/checkout", "path": path}:
                by_cart[path.split("/")[3]] = pays[who]
            case {"kind": "CheckedOut", "order_id": order, "cart_id": cart}:
                by_order[order] = by_cart[cart]
    return by_order
