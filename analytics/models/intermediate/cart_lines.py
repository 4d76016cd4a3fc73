"""Folds the moves of a cart into its lines, as expressions over the array `moves`.

This is a second implementation of the rules in `services/cart/decider.py` (`evolve`), because Spark can't call Python
for every cart without copying all of them. A test folds the same random events with both and compares:
`tests/unit/analytics/models/test_cart_lines.py`.
"""

from pyspark.sql import Column
from pyspark.sql import functions as sf

NO_LINE = "struct(CAST(NULL AS string) AS name, 0 AS quantity, 0L AS unit_price, CAST(NULL AS string) AS currency)"


def lines_after(moves: Column) -> Column:
    """Lines of a cart after these moves, in the order in which the products were first put in."""
    skus = sf.array_distinct(sf.array_compact(sf.transform(moves, lambda move: move["sku"])))
    lines = sf.transform(skus, lambda sku: _line(sku, sf.filter(moves, lambda move: move["sku"] == sku)))
    return sf.filter(lines, lambda line: line["quantity"] > 0)


def pieces(lines: Column) -> Column:
    return sf.aggregate(lines, sf.lit(0).cast("bigint"), lambda sum_, line: sum_ + line["quantity"])


def value(lines: Column) -> Column:
    return sf.aggregate(
        lines, sf.lit(0).cast("bigint"), lambda sum_, line: sum_ + line["quantity"] * line["unit_price"]
    )


def currency(lines: Column) -> Column:
    """Currency of a cart, which has only one; null while it is empty."""
    return sf.get(lines, sf.lit(0))["currency"]


def _line(sku: Column, moves: Column) -> Column:
    folded = sf.aggregate(moves, sf.expr(NO_LINE), _after_move)
    return sf.struct(
        sku.alias("sku"), *(folded[name].alias(name) for name in ("name", "quantity", "unit_price", "currency"))
    )


def _after_move(line: Column, move: Column) -> Column:
    def changed(name: Column, quantity: Column, priced: Column) -> Column:
        return sf.struct(
            name.alias("name"),
            quantity.alias("quantity"),
            priced["unit_price"].alias("unit_price"),
            priced["currency"].alias("currency"),
        )

    return (
        sf.when(move["kind"] == "ItemAdded", changed(move["name"], line["quantity"] + move["quantity"], move))
        .when(move["kind"] == "QuantitySet", changed(line["name"], move["quantity"], move))
        .otherwise(changed(line["name"], sf.lit(0), line))
    )
