"""Product performance by day: put into carts, sold, and returned."""

from pyspark.sql import DataFrame
from pyspark.sql import functions as sf

from analytics.incremental.definition import tally
from analytics.models.intermediate.booking import booked
from analytics.models.scopes.shopping import SHOPPING

FIGURES = ("carts", "orders", "units", "revenue", "returned_units", "returned_revenue")


@tally(key=("day", "sku", "currency"), figures=FIGURES, scope=SHOPPING)
def product_sales(cart_histories: DataFrame, order_processes: DataFrame) -> DataFrame:
    """One row per day, product and currency: carts, orders, pieces and money, and what of these came back."""
    entries = _put_into_carts(cart_histories).unionByName(_sold(order_processes))
    return entries.select(sf.to_date("at").alias("day"), "sku", "currency", *FIGURES)


def _put_into_carts(cart_histories: DataFrame) -> DataFrame:
    """Counts a cart once for a product, when it was first put in."""
    added = sf.filter("moves", lambda move: move["kind"] == "ItemAdded")
    skus = sf.array_distinct(sf.transform(added, lambda move: move["sku"]))
    firsts = sf.transform(skus, lambda sku: sf.get(sf.filter(added, lambda move: move["sku"] == sku), sf.lit(0)))
    put = cart_histories.select(sf.explode(firsts).alias("move"))
    dimensions = [sf.col("move.sku"), sf.col("move.currency")]
    return booked(put, dimensions, FIGURES, (sf.col("move.at"), {"carts": sf.lit(1)}))


def _sold(order_processes: DataFrame) -> DataFrame:
    lines = order_processes.select(
        "confirmed_at",
        sf.when(sf.col("confirmed_at").isNotNull(), sf.col("cancelled_at")).alias("returned_at"),
        sf.explode("placed_lines").alias("line"),
    )
    units = sf.col("line.quantity")
    value = units * sf.col("line.unit_price.amount")
    return booked(
        lines,
        [sf.col("line.sku"), sf.col("line.unit_price.currency")],
        FIGURES,
        (sf.col("confirmed_at"), {"orders": sf.lit(1), "units": units, "revenue": value}),
        (sf.col("returned_at"), {"returned_units": units, "returned_revenue": value}),
    )
