"""What an event of silver is about: its stream, an order, the name of a product."""

from functools import cache

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as sf

from analytics.gold.definition import Silver
from analytics.tables import TOPICS, column_of, living
from shared.schemas import load_schemas

NAMING = ("ProductListed", "ProductRenamed")


def id_of_stream() -> Column:
    return sf.substring_index("stream_id", ":", -1)


def order_of(table: str) -> Column:
    """The order that an event of order, payment or stock is about; null where it is about none."""
    return sf.coalesce(*(sf.col(f"{column}.order_id") for column in _about_orders(table)))


@cache
def _about_orders(table: str) -> tuple[str, ...]:
    [topic] = [topic for topic, name in TOPICS.items() if name == table]
    schemas = living(load_schemas(), topic)
    return tuple(column_of(s.type) for s in schemas if "order_id" in {f["name"] for f in s.definition["fields"]})


def names(silver: Silver) -> DataFrame:
    """What products were called, and since when."""
    listed, renamed = sf.col("product_listed"), sf.col("product_renamed")
    return (
        silver["stock_events"]
        .where(sf.col("event_type").isin(*NAMING))
        .select(
            sf.coalesce(listed["sku"], renamed["sku"]).alias("sku"),
            sf.coalesce(listed["name"], renamed["new_name"]).alias("product_name"),
            sf.col("event_time").alias("since"),
            sf.col("stream_version").alias("name_version"),
        )
    )
