"""What stock makes of the events of an order, read as they come: something for each line."""

from dataclasses import asdict
from typing import get_args

import services.order.events
from services.catalog.commands import CommitStock, ReleaseStock, ReserveStock
from services.catalog.reactions import react
from tests.unit.order.shop import CONFIRMED, LATER, MUG, ORDER, PLACED, POT, cancelled


def test_a_placed_order_reserves_its_lines() -> None:
    assert react("OrderPlaced", asdict(PLACED), f"order:{ORDER}", LATER) == [
        (f"stock:{MUG}", ReserveStock(MUG, ORDER, 2)),
        (f"stock:{POT}", ReserveStock(POT, ORDER, 1)),
    ]


def test_a_confirmed_order_buys_its_lines() -> None:
    assert react("OrderConfirmed", asdict(CONFIRMED), f"order:{ORDER}", LATER) == [
        (f"stock:{MUG}", CommitStock(MUG, ORDER)),
        (f"stock:{POT}", CommitStock(POT, ORDER)),
    ]


def test_a_cancelled_order_releases_its_lines() -> None:
    assert react("OrderCancelled", asdict(cancelled("timeout", payment_id="")), f"order:{ORDER}", LATER) == [
        (f"stock:{MUG}", ReleaseStock(MUG, ORDER, had=0)),
        (f"stock:{POT}", ReleaseStock(POT, ORDER, had=0)),
    ]


def test_an_order_that_got_as_far_as_its_payment_had_all_of_its_lines() -> None:
    assert react("OrderCancelled", asdict(cancelled("customer")), f"order:{ORDER}", LATER) == [
        (f"stock:{MUG}", ReleaseStock(MUG, ORDER, had=2)),
        (f"stock:{POT}", ReleaseStock(POT, ORDER, had=1)),
    ]


def test_everything_else_is_none_of_its_business() -> None:
    known = {event.__name__ for event in get_args(services.order.events.Event)}
    others = known - {"OrderPlaced", "OrderConfirmed", "OrderCancelled"}
    assert [react(name, {"lines": [asdict(PLACED.lines[0])]}, "", LATER) for name in others] == [[]] * len(others)
    assert others
