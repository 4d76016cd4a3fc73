"""All that happened to a cart in one row. Every table about carts is made of it."""

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as sf

from analytics.incremental.scope import minutes_of
from analytics.models.staging.cart_moves import CHECKOUT

MOVE = ("version", "at", "kind", "sku", "name", "quantity", "unit_price", "currency")


def cart_histories(cart_moves: DataFrame) -> DataFrame:
    """One row per cart. `moves` is what the shopper did, in order."""
    by_shopper = sf.col("kind") != "CartAbandoned"
    return cart_moves.groupBy("cart_id").agg(
        sf.max("customer_id").alias("customer_id"),
        _time_of("CartOpened").alias("opened_at"),
        sf.max(sf.when(by_shopper, sf.col("at"))).alias("active_at"),
        _time_of("CartCheckedOut").alias("checked_out_at"),
        _time_of("CartAbandoned").alias("closed_at"),
        *(sf.max(name).alias(name) for name in CHECKOUT),
        sf.sort_array(sf.collect_list(sf.when(by_shopper, sf.struct(*MOVE)))).alias("moves"),
        sf.count("*").alias("events"),
        minutes_of("at").alias("minutes"),
    )


def _time_of(kind: str) -> Column:
    return sf.min(sf.when(sf.col("kind") == kind, sf.col("at")))
