"""The assortment a new shop opens with, as an operator would enter it."""

import csv
from collections.abc import Iterator
from importlib.resources import files

from services.catalog.commands import PutProduct
from shared.money import Money

CURRENCY = "EUR"


def assortment() -> Iterator[PutProduct]:
    with (files(__package__) / "products.csv").open(encoding="utf-8") as rows:
        for row in csv.DictReader(rows):
            price = Money(int(row["price_cents"]), CURRENCY)
            yield PutProduct(row["sku"], row["name"], price, int(row["stock"]))
