"""What other services are told of a product, and when."""

import pytest

from services.catalog.events import Event, PriceChanged, ProductRelisted, ProductRenamed, StockCounted
from services.catalog.product import Product, announce
from shared.money import Money
from tests.unit.catalog.warehouse import (
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
    ("events", "told"),
    [
        ([LISTED], Product(MUG, "Enamel Mug", PRICE, False, 7)),
        ([LISTED, ProductRenamed(MUG, "Enamel Mug", "Tin Mug")], Product(MUG, "Tin Mug", PRICE, False, 7)),
        ([LISTED, PriceChanged(MUG, PRICE, DEARER)], Product(MUG, "Enamel Mug", DEARER, False, 7)),
        ([LISTED, WITHDRAWN], Product(MUG, "Enamel Mug", PRICE, True, 7)),
        ([LISTED, WITHDRAWN, ProductRelisted(MUG)], Product(MUG, "Enamel Mug", PRICE, False, 7)),
    ],
)
def test_what_is_shown_is_told_with_its_version(events: list[Event], told: Product) -> None:
    assert announce(given(*events).state, 7) == told


@pytest.mark.parametrize(
    "event",
    [reserved(FIRST, 1), rejected(FIRST, 1, 0), released(FIRST, 0), sold(FIRST, 1), StockCounted(MUG, 1, 11)],
)
def test_pieces_coming_and_going_are_told_too_or_who_waits_for_that_version_waits_for_ever(event: Event) -> None:
    assert announce(given(LISTED, event).state, 2) == Product(MUG, "Enamel Mug", PRICE, False, 2)


def test_a_product_that_was_never_listed_is_not_told() -> None:
    assert announce(given(rejected(FIRST, 1, 0)).state, 1) is None
