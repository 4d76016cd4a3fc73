"""The pieces of a product, counted anew: what the events say must add up, whoever wrote them."""

import pytest

from services.catalog.events import (
    ProductListed,
    StockCounted,
    StockReleased,
    StockReserved,
    StockReturned,
    StockSold,
)
from services.replay.checks.stock import Pieces
from shared.money import Money

LISTED = ProductListed("MUG", "Mug", Money(100, "EUR"), 3)


def counted(*events: object) -> Pieces:
    pieces = Pieces("MUG")
    for version, event in enumerate(events, 1):
        pieces.count(version, event)
    return pieces


def test_what_adds_up() -> None:
    pieces = counted(
        LISTED,
        StockReserved("MUG", "a", 2),
        StockSold("MUG", "a", 2),
        StockReserved("MUG", "b", 1),
        StockReleased("MUG", "b", 1),
        StockReturned("MUG", "a", 2),
        StockCounted("MUG", -1, 2),
        StockReleased("MUG", "never heard of", 0),
        StockReserved("MUG", "c", 2),
    )
    assert pieces.wrong == []
    assert (pieces.supplied, pieces.gone, pieces.held, pieces.sold) == (2, 2, {"c": 2}, {})


@pytest.mark.parametrize(
    ("events", "what"),
    [
        ([StockReserved("MUG", "a", 4)], "4 pieces are promised or sold, 3 were supplied."),
        ([StockReserved("MUG", "a", 2), StockSold("MUG", "a", 1)], "StockSold is of 1 pieces; order a had 2."),
        ([StockSold("MUG", "a", 1)], "StockSold is of 1 pieces; order a had 0."),
        ([StockReserved("MUG", "a", 2), StockReleased("MUG", "a", 3)], "StockReleased is of 3 pieces; order a had 2."),
        ([StockReturned("MUG", "a", 1)], "StockReturned is of 1 pieces; order a had 0."),
        (
            [StockReserved("MUG", "a", 3), StockCounted("MUG", -1, 2)],
            "3 pieces are promised or sold, 2 were supplied.",
        ),
    ],
)
def test_what_does_not(events: list[object], what: str) -> None:
    assert what in [said for _, said in counted(LISTED, *events).wrong]
