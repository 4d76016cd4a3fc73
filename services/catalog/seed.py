"""The products that a new shop opens with (`till seed`), as commands of an operator."""

import csv
from collections.abc import Iterator
from importlib.resources import files

from services.catalog.commands import PutProduct
from services.common.money import Money

CURRENCY = "EUR"


def assortment() -> Iterator[PutProduct]:
    with (files(__package__) / "products.csv").open(encoding="utf-8") as rows:
        for row in csv.DictReader(rows):
            price = Money(int(row["price_cents"]), CURRENCY)
            yield PutProduct(row["sku"], row["name"], price, int(row["stock"]))
