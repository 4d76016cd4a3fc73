"""The product documents for other services are announced at every version."""

import pytest

from services.catalog.events import Event, PriceChanged, ProductRelisted, ProductRenamed, StockCounted
from services.catalog.product import Product, announce
from services.common.money import Money
from tests.unit.services.catalog.words import (
    FIRST,
    LISTED,
    MUG,
    PRICE,
    WITHDRAWN,
    given,
    rejected,
    released,
    reserved,
    sold,
)

DEARER = Money(1290, "EUR")


@pytest.mark.parametrize(
    ("events", "announced"),
    [
        ([LISTED], Product(MUG, "Enamel Mug", PRICE, False, 7)),
        ([LISTED, ProductRenamed(MUG, "Enamel Mug", "Tin Mug")], Product(MUG, "Tin Mug", PRICE, False, 7)),
        ([LISTED, PriceChanged(MUG, PRICE, DEARER)], Product(MUG, "Enamel Mug", DEARER, False, 7)),
        ([LISTED, WITHDRAWN], Product(MUG, "Enamel Mug", PRICE, True, 7)),
        ([LISTED, WITHDRAWN, ProductRelisted(MUG)], Product(MUG, "Enamel Mug", PRICE, False, 7)),
    ],
)
def test_an_announced_product_names_its_version(events: list[Event], announced: Product) -> None:
    assert announce(given(*events).state, 7) == announced


@pytest.mark.parametrize(
    "event",
    [reserved(FIRST, 1), rejected(FIRST, 1, 0), released(FIRST, 0), sold(FIRST, 1), StockCounted(MUG, 1, 11)],
)
def test_a_change_of_stock_alone_is_announced_too(event: Event) -> None:
    assert announce(given(LISTED, event).state, 2) == Product(MUG, "Enamel Mug", PRICE, False, 2)


def test_a_product_that_was_never_listed_is_not_announced() -> None:
    assert announce(given(rejected(FIRST, 1, 0)).state, 1) is None
