"""Moves of carts: every event of a cart, in the columns that tables about shopping need."""

from pyspark.sql import DataFrame
from pyspark.sql import functions as sf

from analytics.models.staging.stream_ids import id_of_stream

CHECKOUT = ("order_id",)
"""Fields of CartCheckedOut that tables about carts need; `cart_histories` passes them on."""


def cart_moves(cart_events: DataFrame) -> DataFrame:
    """One row per event of a cart."""
    added, quantity_set, removed = sf.col("item_added"), sf.col("quantity_set"), sf.col("item_removed")
    price = sf.coalesce(added["unit_price"], quantity_set["unit_price"])
    return cart_events.select(
        "event_id",
        id_of_stream().alias("cart_id"),
        sf.col("stream_version").alias("version"),
        sf.col("event_time").alias("at"),
        sf.col("event_type").alias("kind"),
        sf.coalesce(added["sku"], quantity_set["sku"], removed["sku"]).alias("sku"),
        added["name"].alias("name"),
        sf.coalesce(added["quantity"], quantity_set["quantity"], sf.lit(0)).alias("quantity"),
        price["amount"].alias("unit_price"),
        price["currency"].alias("currency"),
        sf.coalesce("cart_opened.customer_id", "cart_checked_out.customer_id").alias("customer_id"),
        *(sf.col(f"cart_checked_out.{name}").alias(name) for name in CHECKOUT),
    )
