"""One row an order, with what all services said about it: cart, order, payment and stock."""

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as sf

from analytics.gold.definition import Gold, Silver
from analytics.gold.processes import STEPS
from analytics.gold.shopping import SHOPPING, SHOPPING_READS, touched_orders


def orders(silver: Silver) -> DataFrame:
    return (
        silver["order_processes"]
        .join(_lines(silver), "order_id", "left")
        .select(
            "order_id",
            "cart_id",
            "customer_id",
            "payment_id",
            "status",
            "reason",
            "payment_status",
            "lines",
            "items",
            "total",
            "currency",
            "captured",
            "refunded",
            "reference",
            "refund_reference",
            "pieces_reserved",
            "pieces_sold",
            "pieces_released",
            "pieces_returned",
            "cart_opened_at",
            "checked_out_at",
            *STEPS.values(),
            _ms("cart_opened_at", "checked_out_at").alias("shopping_ms"),
            _ms("placed_at", "reserved_at").alias("reserving_ms"),
            _ms("placed_at", sf.coalesce("confirmed_at", "cancelled_at")).alias("deciding_ms"),
            _ms("confirmed_at", "captured_at").alias("capturing_ms"),
            "events",
            "minutes",
        )
    )


def _lines(silver: Silver) -> DataFrame:
    """The lines as placed, with what the product was called then by the catalog: a join of a stream and a table."""
    placed = (
        silver["order_moves"]
        .where("placed IS NOT NULL")
        .select(
            "order_id",
            sf.col("event_time").alias("placed_at"),
            sf.posexplode("placed.lines").alias("place", "line"),
        )
    )
    called = (sf.col("line.sku") == sf.col("named")) & (sf.col("since") <= sf.col("placed_at"))
    line = sf.struct(
        "place",
        sf.col("line.sku").alias("sku"),
        sf.col("line.name").alias("name"),
        sf.coalesce("product_name", "line.name").alias("product_name"),
        sf.col("line.quantity").alias("quantity"),
        sf.col("line.unit_price.amount").alias("unit_price"),
        sf.col("line.unit_price.currency").alias("currency"),
    )
    return (
        placed.join(silver["product_names"], called, "left")
        .groupBy("order_id", "place", "line")
        .agg(sf.max_by("product_name", "name_version").alias("product_name"))
        .groupBy("order_id")
        .agg(sf.sort_array(sf.collect_list(line)).alias("sorted"))
        .select("order_id", sf.transform("sorted", lambda line: line.dropFields("place")).alias("lines"))
    )


def _ms(start: str, end: str | Column) -> Column:
    return sf.unix_millis(end if isinstance(end, Column) else sf.col(end)) - sf.unix_millis(sf.col(start))


ORDERS = Gold(
    name="orders",
    about="One row an order, all services joined: where it stands, what it costs, what was paid, when each step was.",
    reads=SHOPPING_READS,
    key=("order_id",),
    unit=("order_id",),
    compute=orders,
    touched=touched_orders,
    narrowed=lambda rows, _orders: rows,
    scope=SHOPPING,
    time="placed_at",
)
