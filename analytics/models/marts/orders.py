"""Orders with what all services recorded about them: cart, order, payment and stock."""

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as sf

from analytics.incremental.definition import table
from analytics.models.intermediate.order_processes import STEPS
from analytics.models.scopes.shopping import SHOPPING, affected_orders


@table(key="order_id", scope=SHOPPING, affected=affected_orders, time="placed_at")
def orders(order_processes: DataFrame, order_moves: DataFrame, product_names: DataFrame) -> DataFrame:
    """One row per order, all services joined: status, price, payment, and the time of each step."""
    return order_processes.join(_lines(order_moves, product_names), on="order_id", how="left").select(
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


def _lines(order_moves: DataFrame, product_names: DataFrame) -> DataFrame:
    """Lines as placed, each with the name that the product had in the catalog at that time."""
    placed = order_moves.where("placed IS NOT NULL").select(
        "order_id",
        sf.col("event_time").alias("placed_at"),
        sf.posexplode("placed.lines").alias("place", "line"),
    )
    had_name = (sf.col("line.sku") == sf.col("named")) & (sf.col("since") <= sf.col("placed_at"))
    line = sf.struct(
        "place",
        sf.col("line.sku").alias("sku"),
        sf.col("line.name").alias("name"),
        sf.coalesce("product_name", "line.name").alias("product_name"),
        sf.col("line.quantity").alias("quantity"),
        sf.col("line.unit_price.amount").alias("unit_price"),
        sf.col("line.unit_price.currency").alias("currency"),
    )
    named = (
        placed.join(product_names, on=had_name, how="left")
        .groupBy("order_id", "place", "line")
        .agg(sf.max_by("product_name", "name_version").alias("product_name"))
    )
    sorted_lines = named.groupBy("order_id").agg(sf.sort_array(sf.collect_list(line)).alias("sorted"))
    return sorted_lines.select("order_id", sf.transform("sorted", lambda line: line.dropFields("place")).alias("lines"))


def _ms(start: str, end: str | Column) -> Column:
    return sf.unix_millis(end if isinstance(end, Column) else sf.col(end)) - sf.unix_millis(sf.col(start))
