"""The products that a new shop opens with."""

from collections import Counter

from services.catalog.decider import decide, initial
from services.catalog.events import ProductListed
from services.catalog.seed import assortment

PRODUCTS = list(assortment())


def test_there_are_a_few_hundred_products_in_seven_departments() -> None:
    departments = Counter(product.sku.partition("-")[0] for product in PRODUCTS)
    assert len(PRODUCTS) >= 300
    assert len(departments) == 7
    assert min(departments.values()) >= 40


def test_each_product_of_the_seed_is_accepted_as_it_is_written() -> None:
    for product in PRODUCTS:
        listed = ProductListed(product.sku, product.name, product.price, product.stock)
        assert decide(product, initial) == [listed]


def test_no_two_products_of_the_seed_share_a_sku_or_a_name() -> None:
    assert len({product.sku for product in PRODUCTS}) == len(PRODUCTS)
    assert len({product.name for product in PRODUCTS}) == len(PRODUCTS)


def test_any_products_of_the_seed_fit_into_one_cart() -> None:
    assert {product.price.currency for product in PRODUCTS} == {"EUR"}


def test_each_product_of_the_seed_can_be_bought() -> None:
    assert min(product.stock for product in PRODUCTS) > 0
