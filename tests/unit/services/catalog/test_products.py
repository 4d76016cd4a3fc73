"""The rules for listing, changing and withdrawing a product."""

import pytest

from services.catalog.commands import PutProduct
from services.catalog.decider import evolve, initial
from services.catalog.events import (
    Event,
    PriceChanged,
    ProductListed,
    ProductRelisted,
    ProductRenamed,
    ProductWithdrawn,
    StockCounted,
)
from services.common.money import Money
from tests.unit.services.catalog.words import (
    FIRST,
    LISTED,
    MUG,
    PRICE,
    SECOND,
    WITHDRAW,
    WITHDRAWN,
    given,
    put,
    released,
    reserved,
    sold,
)

DEARER = Money(1290, "EUR")


def test_a_new_product_is_listed() -> None:
    given().when(put()).then(ProductListed(MUG, "Enamel Mug", PRICE, 10))


def test_putting_the_same_product_again_changes_nothing() -> None:
    given(LISTED).when(put()).nothing()


def test_a_product_is_renamed() -> None:
    given(LISTED).when(put(name="Enamel Mug, blue")).then(ProductRenamed(MUG, "Enamel Mug", "Enamel Mug, blue"))


def test_space_around_a_name_does_not_count() -> None:
    given(LISTED).when(put(name="  Enamel Mug ")).nothing()
    given().when(put(name="  Enamel Mug ")).then(LISTED)


def test_a_price_change_tells_old_and_new() -> None:
    given(LISTED).when(put(price=DEARER)).then(PriceChanged(MUG, PRICE, DEARER))


def test_a_changed_price_is_not_changed_again() -> None:
    given(LISTED, PriceChanged(MUG, PRICE, DEARER)).when(put(price=DEARER)).nothing()


def test_a_count_that_differs_from_the_stock_is_recorded_with_the_difference() -> None:
    given(LISTED).when(put(stock=25)).then(StockCounted(MUG, 15, counted=25))
    given(LISTED).when(put(stock=4)).then(StockCounted(MUG, -6, counted=4))


def test_stock_is_what_is_on_hand_so_reserved_pieces_count_and_sold_ones_do_not() -> None:
    history: list[Event] = [LISTED, reserved(FIRST, 3), reserved(SECOND, 2), sold(SECOND, 2)]
    given(*history).when(put(stock=8)).nothing()
    given(*history).when(put(stock=10)).then(StockCounted(MUG, 2, counted=10))


def test_pieces_reserved_for_orders_cannot_be_counted_away() -> None:
    given(LISTED, reserved(FIRST, 3)).when(put(stock=2)).refused("stock-below-reserved", "3 pieces")
    given(LISTED, reserved(FIRST, 3)).when(put(stock=3)).then(StockCounted(MUG, -7, counted=3))
    given(LISTED, reserved(FIRST, 3), released(FIRST, 3)).when(put(stock=0)).then(StockCounted(MUG, -10, counted=0))


def test_everything_may_change_at_once() -> None:
    given(LISTED, WITHDRAWN).when(put(name="Tin Mug", price=DEARER, stock=11)).then(
        ProductRelisted(MUG),
        ProductRenamed(MUG, "Enamel Mug", "Tin Mug"),
        PriceChanged(MUG, PRICE, DEARER),
        StockCounted(MUG, 1, counted=11),
    )


def test_a_product_is_withdrawn_once() -> None:
    given(LISTED).when(WITHDRAW).then(ProductWithdrawn(MUG))
    given(LISTED, WITHDRAWN).when(WITHDRAW).nothing()


def test_a_withdrawn_product_is_sold_again_when_it_is_put_again() -> None:
    given(LISTED, WITHDRAWN).when(put()).then(ProductRelisted(MUG))
    given(LISTED, WITHDRAWN, ProductRelisted(MUG)).when(put()).nothing()


def test_an_unknown_product_cannot_be_withdrawn() -> None:
    given().when(WITHDRAW).refused("product-unknown", MUG)


@pytest.mark.parametrize(
    ("command", "code"),
    [
        (put(sku=""), "sku-invalid"),
        (put(sku="mug-350"), "sku-invalid"),
        (put(sku="MUG--350"), "sku-invalid"),
        (put(sku="MUG 350"), "sku-invalid"),
        (put(sku="MUG-350\n"), "sku-invalid"),
        (put(sku="M" * 41), "sku-invalid"),
        (put(name=""), "name-empty"),
        (put(name=" \t"), "name-empty"),
        (put(name="Mug\x00"), "name-unprintable"),
        (put(name="Enamel\nMug"), "name-unprintable"),
        (put(name="M" * 201), "name-too-long"),
        (put(price=Money(0, "EUR")), "price-invalid"),
        (put(price=Money(-1, "EUR")), "price-invalid"),
        (put(price=Money(10**9 + 1, "EUR")), "price-invalid"),
        (put(price=Money(1190, "eur")), "currency-invalid"),
        (put(price=Money(1190, "EURO")), "currency-invalid"),
        (put(price=Money(1190, "")), "currency-invalid"),
        (put(stock=-1), "stock-negative"),
        (put(stock=10**9 + 1), "stock-too-large"),
    ],
)
def test_an_invalid_product_is_refused_whether_it_is_new_or_not(command: PutProduct, code: str) -> None:
    given().when(command).refused(code)
    given(LISTED).when(command).refused(code)


@pytest.mark.parametrize(
    "event",
    [WITHDRAWN, ProductRelisted(MUG), ProductRenamed(MUG, "Mug", "Cup"), PriceChanged(MUG, PRICE, DEARER)],
)
def test_nothing_happens_to_a_product_that_was_never_listed(
    event: ProductWithdrawn | ProductRelisted | ProductRenamed | PriceChanged,
) -> None:
    with pytest.raises(ValueError, match="never listed"):
        evolve(initial, event)
