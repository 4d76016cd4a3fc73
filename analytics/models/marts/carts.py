"""Carts as they stand."""

from pyspark.sql import DataFrame
from pyspark.sql import functions as sf

from analytics.incremental.definition import table
from analytics.models.intermediate.cart_lines import currency, lines_after, pieces, value
from analytics.models.scopes.shopping import SHOPPING, affected_carts


@table(key="cart_id", scope=SHOPPING, affected=affected_carts, time="opened_at")
def carts(cart_histories: DataFrame) -> DataFrame:
    """One row per cart: its current contents, what they are worth, and what became of it."""
    status = (
        sf.when(sf.col("checked_out_at").isNotNull(), "checked_out")
        .when(sf.col("closed_at").isNotNull(), "abandoned")
        .otherwise("open")
    )
    return cart_histories.withColumn("lines", lines_after(sf.col("moves"))).select(
        "cart_id",
        "customer_id",
        status.alias("status"),
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
