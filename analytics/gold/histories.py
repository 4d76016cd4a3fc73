"""One row a cart, with all that its shopper did: what every table about carts is made of."""

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as sf

from analytics.gold.definition import Silver
from analytics.gold.pruning import minutes_of

MOVE = ("version", "at", "kind", "sku", "name", "quantity", "unit_price", "currency")


def cart_histories(silver: Silver) -> DataFrame:
    """What the shopper did is in `moves`, in order."""
    by_shopper = sf.col("kind") != "CartAbandoned"
    return (
        silver["cart_moves"]
        .groupBy("cart_id")
        .agg(
            sf.max("customer_id").alias("customer_id"),
            _when("CartOpened").alias("opened_at"),
            sf.max(sf.when(by_shopper, sf.col("at"))).alias("active_at"),
            _when("CartCheckedOut").alias("checked_out_at"),
            _when("CartAbandoned").alias("closed_at"),
            sf.max("order_id").alias("order_id"),
            sf.sort_array(sf.collect_list(sf.when(by_shopper, sf.struct(*MOVE)))).alias("moves"),
            sf.count("*").alias("events"),
            minutes_of("at").alias("minutes"),
        )
    )


def _when(kind: str) -> Column:
    return sf.min(sf.when(sf.col("kind") == kind, sf.col("at")))
