"""An event of an order leads to a stock command for each of its lines."""

from dataclasses import asdict
from typing import Any, get_args

import services.order.events
from services.catalog.commands import CommitStock, ReleaseStock, ReserveStock
from services.catalog.reactions import react
from shared.messaging.incoming import Incoming
from tests.unit.services.order.words import CONFIRMED, LATER, MUG, ORDER, PLACED, POT, cancelled


def message(event_type: str, data: dict[str, Any]) -> Incoming:
    return Incoming(event_type, f"order:{ORDER}", 1, data)


def test_a_placed_order_reserves_its_lines() -> None:
    assert react(message("OrderPlaced", asdict(PLACED)), LATER) == [
        (f"stock:{MUG}", ReserveStock(MUG, ORDER, 2)),
        (f"stock:{POT}", ReserveStock(POT, ORDER, 1)),
    ]


def test_a_confirmed_order_buys_its_lines() -> None:
    assert react(message("OrderConfirmed", asdict(CONFIRMED)), LATER) == [
        (f"stock:{MUG}", CommitStock(MUG, ORDER)),
        (f"stock:{POT}", CommitStock(POT, ORDER)),
    ]


def test_a_cancelled_order_releases_its_lines() -> None:
    assert react(message("OrderCancelled", asdict(cancelled("timeout", payment_id=""))), LATER) == [
        (f"stock:{MUG}", ReleaseStock(MUG, ORDER, had=0)),
        (f"stock:{POT}", ReleaseStock(POT, ORDER, had=0)),
    ]


def test_an_order_that_got_as_far_as_its_payment_had_all_of_its_lines() -> None:
    assert react(message("OrderCancelled", asdict(cancelled("customer"))), LATER) == [
        (f"stock:{MUG}", ReleaseStock(MUG, ORDER, had=2)),
        (f"stock:{POT}", ReleaseStock(POT, ORDER, had=1)),
    ]


def test_other_events_lead_to_no_command() -> None:
    known = {event.__name__ for event in get_args(services.order.events.Event)}
    others = known - {"OrderPlaced", "OrderConfirmed", "OrderCancelled"}
    assert [react(message(name, {"lines": [asdict(PLACED.lines[0])]}), LATER) for name in others] == [[]] * len(others)
    assert others
