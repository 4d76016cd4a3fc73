"""What the tables about shopping need of silver, flat: moves of carts, what was said about orders, names of products.

Each row has the id of its event.
"""

from functools import cache, reduce

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as sf

from analytics.gold.definition import Silver
from analytics.tables import TOPICS, column_of, living
from shared.schemas import load_schemas

NAMING = ("ProductListed", "ProductRenamed")


def flat(silver: Silver) -> Silver:
    said = [_order_said(silver), _payment_said(silver), _stock_said(silver)]
    return {
        "cart_moves": _cart_moves(silver),
        "order_moves": reduce(lambda one, other: one.unionByName(other, allowMissingColumns=True), said),
        "product_names": _product_names(silver),
    }


def _cart_moves(silver: Silver) -> DataFrame:
    added, quantity_set, removed = sf.col("item_added"), sf.col("quantity_set"), sf.col("item_removed")
    price = sf.coalesce(added["unit_price"], quantity_set["unit_price"])
    return silver["cart_events"].select(
        "event_id",
        _id_of_stream().alias("cart_id"),
        sf.col("stream_version").alias("version"),
        sf.col("event_time").alias("at"),
        sf.col("event_type").alias("kind"),
        sf.coalesce(added["sku"], quantity_set["sku"], removed["sku"]).alias("sku"),
        added["name"].alias("name"),
        sf.coalesce(added["quantity"], quantity_set["quantity"], sf.lit(0)).alias("quantity"),
        price["amount"].alias("unit_price"),
        price["currency"].alias("currency"),
        sf.coalesce("cart_opened.customer_id", "cart_checked_out.customer_id").alias("customer_id"),
        sf.col("cart_checked_out.order_id").alias("order_id"),
    )


def _order_said(silver: Silver) -> DataFrame:
    placed = sf.col("order_placed")
    wanted = ("cart_id", "customer_id", "lines", "total")  # not whom it is sent to: the lake counts, it does not ship
    return _said(
        silver,
        "order_events",
        sf.when(placed.isNotNull(), sf.struct(*(placed[name].alias(name) for name in wanted))).alias("placed"),
        sf.col("order_cancelled.reason").alias("reason"),
    )


def _payment_said(silver: Silver) -> DataFrame:
    captured, refunded = sf.col("payment_captured"), sf.col("payment_refunded")
    money = sf.coalesce(captured["amount"], refunded["amount"])
    return _said(
        silver,
        "payment_events",
        _id_of_stream().alias("payment_id"),
        sf.col("stream_version").alias("payment_version"),
        money["amount"].alias("amount"),
        money["currency"].alias("currency"),
        sf.coalesce(captured["reference"], refunded["reference"], "payment_authorized.reference").alias("reference"),
    )


def _stock_said(silver: Silver) -> DataFrame:
    moved = ("stock_reserved", "stock_sold", "stock_released", "stock_returned")
    quantity = sf.coalesce(*(f"{column}.quantity" for column in moved)).cast("bigint")
    return _said(silver, "stock_events", quantity.alias("amount"))


def _said(silver: Silver, table: str, *columns: Column) -> DataFrame:
    about = sf.coalesce(*(sf.col(f"{column}.order_id") for column in _about_orders(table)))
    said = silver[table].select("event_id", about.alias("order_id"), "event_type", "event_time", *columns)
    return said.where("order_id IS NOT NULL")


def _product_names(silver: Silver) -> DataFrame:
    """What products were called, and since when."""
    listed, renamed = sf.col("product_listed"), sf.col("product_renamed")
    return (
        silver["stock_events"]
        .where(sf.col("event_type").isin(*NAMING))
        .select(
            "event_id",
            sf.coalesce(listed["sku"], renamed["sku"]).alias("named"),
            sf.coalesce(listed["name"], renamed["new_name"]).alias("product_name"),
            sf.col("event_time").alias("since"),
            sf.col("stream_version").alias("name_version"),
        )
    )


@cache
def _about_orders(table: str) -> tuple[str, ...]:
    """The types of events that name an order."""
    [topic] = [topic for topic, name in TOPICS.items() if name == table]
    schemas = living(load_schemas(), topic)
    return tuple(column_of(s.type) for s in schemas if "order_id" in {f["name"] for f in s.definition["fields"]})


def _id_of_stream() -> Column:
    return sf.substring_index("stream_id", ":", -1)
