"""How products do, day by day: put into carts, sold, and brought back."""

from pyspark.sql import DataFrame
from pyspark.sql import functions as sf

from analytics.gold.booking import booked
from analytics.gold.definition import Silver, Tally
from analytics.gold.shopping import SHOPPING, SHOPPING_READS

FIGURES = ("carts", "orders", "units", "revenue", "returned_units", "returned_revenue")


def product_sales(silver: Silver) -> DataFrame:
    entries = _put_into_carts(silver).unionByName(_sold(silver))
    return entries.select(sf.to_date("at").alias("day"), "sku", "currency", *FIGURES)


def _put_into_carts(silver: Silver) -> DataFrame:
    """A cart counts once for a product, when it was first put in."""
    added = sf.filter("moves", lambda move: move["kind"] == "ItemAdded")
    skus = sf.array_distinct(sf.transform(added, lambda move: move["sku"]))
    firsts = sf.transform(skus, lambda sku: sf.get(sf.filter(added, lambda move: move["sku"] == sku), sf.lit(0)))
    put = silver["cart_histories"].select(sf.explode(firsts).alias("move"))
    about = [sf.col("move.sku"), sf.col("move.currency")]
    return booked(put, about, FIGURES, (sf.col("move.at"), {"carts": sf.lit(1)}))


def _sold(silver: Silver) -> DataFrame:
    lines = silver["order_processes"].select(
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


PRODUCTS = Tally(
    name="product_sales",
    about="For each product and day: carts it was put in, orders, pieces and money, and what of these came back.",
    reads=SHOPPING_READS,
    key=("day", "sku", "currency"),
    figures=FIGURES,
    facts=product_sales,
    scope=SHOPPING,
)
