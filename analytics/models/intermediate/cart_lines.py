"""One row a cart, as it stands; and how its lines are folded, here in Spark as in the cart's own rules."""

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as sf

from analytics.gold.definition import Gold, Silver
from analytics.gold.shopping import SHOPPING, touched_carts

NO_LINE = "struct(CAST(NULL AS string) AS name, 0 AS quantity, 0L AS unit_price, CAST(NULL AS string) AS currency)"


def carts(silver: Silver) -> DataFrame:
    return (
        silver["cart_histories"]
        .withColumn("lines", lines_after(sf.col("moves")))
        .select(
            "cart_id",
            "customer_id",
            sf.when(sf.col("checked_out_at").isNotNull(), "checked_out")
            .when(sf.col("closed_at").isNotNull(), "abandoned")
            .otherwise("open")
            .alias("status"),
            "opened_at",
            "active_at",
            "checked_out_at",
            "closed_at",
            "order_id",
            "lines",
            pieces(sf.col("lines")).alias("pieces"),
            value(sf.col("lines")).alias("value"),
            currency(sf.col("lines")).alias("currency"),
            "events",
            "minutes",
        )
    )


def lines_after(moves: Column) -> Column:
    """What is in the cart after these moves, in the order of putting in."""
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
    """A cart has only one; null while it is empty."""
    return sf.get(lines, sf.lit(0))["currency"]


def _line(sku: Column, moves: Column) -> Column:
    folded = sf.aggregate(moves, sf.expr(NO_LINE), _moved)
    return sf.struct(
        sku.alias("sku"), *(folded[name].alias(name) for name in ("name", "quantity", "unit_price", "currency"))
    )


def _moved(line: Column, move: Column) -> Column:
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


CARTS = Gold(
    name="carts",
    about="One row a cart, as it stands: what is in it, what that is worth, and what became of it.",
    reads=("cart_events",),
    key=("cart_id",),
    unit=("cart_id",),
    compute=carts,
    touched=lambda new, _rows: touched_carts(new),
    narrowed=lambda rows, _carts: rows,
    scope=SHOPPING,
    time="opened_at",
)
