"""The check of stock counts the pieces of a product from its events, and finds events that do not add up."""

import pytest

from services.catalog.events import (
    ProductListed,
    StockCounted,
    StockReleased,
    StockReserved,
    StockReturned,
    StockSold,
)
from services.common.money import Money
from services.operations.verify.checks.stock import Pieces

LISTED = ProductListed("MUG", "Mug", Money(100, "EUR"), 3)


def counted(*events: object) -> Pieces:
    pieces = Pieces("MUG")
    for version, event in enumerate(events, 1):
        pieces.count(version, event)
    return pieces


def test_events_that_add_up_have_no_problem() -> None:
    pieces = counted(
        LISTED,
        StockReserved("MUG", "a", 2),
        StockSold("MUG", "a", 2),
        StockReserved("MUG", "b", 1),
        StockReleased("MUG", "b", 1),
        StockReturned("MUG", "a", 2),
        StockCounted("MUG", -1, 2),
        StockReleased("MUG", "unknown", 0),
        StockReserved("MUG", "c", 2),
    )
    assert pieces.wrong == []
    assert (pieces.supplied, pieces.gone, pieces.held, pieces.sold) == (2, 2, {"c": 2}, {})


@pytest.mark.parametrize(
    ("events", "what"),
    [
        ([StockReserved("MUG", "a", 4)], "4 pieces are promised or sold, 3 were supplied."),
        ([StockReserved("MUG", "a", 2), StockSold("MUG", "a", 1)], "StockSold has 1 pieces; order a had 2."),
        ([StockSold("MUG", "a", 1)], "StockSold has 1 pieces; order a had 0."),
        ([StockReserved("MUG", "a", 2), StockReleased("MUG", "a", 3)], "StockReleased has 3 pieces; order a had 2."),
        ([StockReturned("MUG", "a", 1)], "StockReturned has 1 pieces; order a had 0."),
        (
            [StockReserved("MUG", "a", 3), StockCounted("MUG", -1, 2)],
            "3 pieces are promised or sold, 2 were supplied.",
        ),
    ],
)
def test_events_that_do_not_add_up_are_found(events: list[object], what: str) -> None:
    assert what in [problem for _, problem in counted(LISTED, *events).wrong]
