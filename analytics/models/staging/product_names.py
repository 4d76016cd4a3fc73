"""Names of products, and since when each is valid."""

from pyspark.sql import DataFrame
from pyspark.sql import functions as sf

NAMING = ("ProductListed", "ProductRenamed")
"""Types of events that give a product a name."""


def product_names(stock_events: DataFrame) -> DataFrame:
    """One row per name that a product was given."""
    listed, renamed = sf.col("product_listed"), sf.col("product_renamed")
    return stock_events.where(sf.col("event_type").isin(*NAMING)).select(
        "event_id",
        sf.coalesce(listed["sku"], renamed["sku"]).alias("named"),
        sf.coalesce(listed["name"], renamed["new_name"]).alias("product_name"),
        sf.col("event_time").alias("since"),
        sf.col("stream_version").alias("name_version"),
    )
