"""One row a cart, with all that its shopper did: what every table about carts is made of."""

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as sf

from analytics.gold.definition import Silver
from analytics.gold.pruning import minutes_of
from analytics.gold.streams import id_of_stream


def cart_histories(silver: Silver) -> DataFrame:
    """One row a cart, with what its shopper did in order: `moves`."""
    added, quantity_set, removed = sf.col("item_added"), sf.col("quantity_set"), sf.col("item_removed")
    price = sf.coalesce(added["unit_price"], quantity_set["unit_price"])
    move = sf.struct(
        sf.col("stream_version").alias("version"),
        sf.col("event_time").alias("at"),
        sf.col("event_type").alias("kind"),
        sf.coalesce(added["sku"], quantity_set["sku"], removed["sku"]).alias("sku"),
        added["name"].alias("name"),
        sf.coalesce(added["quantity"], quantity_set["quantity"], sf.lit(0)).alias("quantity"),
        price["amount"].alias("unit_price"),
        price["currency"].alias("currency"),
    )
    by_shopper = sf.col("event_type") != "CartAbandoned"
    return (
        silver["cart_events"]
        .groupBy(id_of_stream().alias("cart_id"))
        .agg(
            sf.max(sf.coalesce("cart_opened.customer_id", "cart_checked_out.customer_id")).alias("customer_id"),
            _when("CartOpened").alias("opened_at"),
            sf.max(sf.when(by_shopper, sf.col("event_time"))).alias("active_at"),
            _when("CartCheckedOut").alias("checked_out_at"),
            _when("CartAbandoned").alias("closed_at"),
            sf.max("cart_checked_out.order_id").alias("order_id"),
            sf.sort_array(sf.collect_list(sf.when(by_shopper, move))).alias("moves"),
            sf.count("*").alias("events"),
            minutes_of("event_time").alias("minutes"),
        )
    )


def _when(event_type: str) -> Column:
    return sf.min(sf.when(sf.col("event_type") == event_type, sf.col("event_time")))
