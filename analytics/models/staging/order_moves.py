"""Moves of orders: every event of the order, payment and stock services that names an order."""

from functools import cache

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as sf

from analytics.catalog import column_of, current_events
from analytics.models.staging.stream_ids import id_of_stream
from shared.schemas.contract.event_schemas import load_schemas

PLACED = ("cart_id", "customer_id", "lines", "total")
"""Fields of OrderPlaced that are kept. Addresses are not: the lake counts, it does not ship."""


def order_moves(order_events: DataFrame, payment_events: DataFrame, stock_events: DataFrame) -> DataFrame:
    """One row per event that names an order."""
    services = (_of_order(order_events), _of_payment(payment_events), _of_stock(stock_events))
    first, second, third = services
    return first.unionByName(second, allowMissingColumns=True).unionByName(third, allowMissingColumns=True)


def _of_order(order_events: DataFrame) -> DataFrame:
    placed = sf.col("order_placed")
    return _moves(
        order_events,
        "order.events",
        sf.when(placed.isNotNull(), sf.struct(*(placed[name].alias(name) for name in PLACED))).alias("placed"),
        sf.col("order_cancelled.reason").alias("reason"),
    )


def _of_payment(payment_events: DataFrame) -> DataFrame:
    captured, refunded = sf.col("payment_captured"), sf.col("payment_refunded")
    money = sf.coalesce(captured["amount"], refunded["amount"])
    return _moves(
        payment_events,
        "payment.events",
        id_of_stream().alias("payment_id"),
        sf.col("stream_version").alias("payment_version"),
        money["amount"].alias("amount"),
        money["currency"].alias("currency"),
        sf.coalesce(captured["reference"], refunded["reference"], "payment_authorized.reference").alias("reference"),
    )


def _of_stock(stock_events: DataFrame) -> DataFrame:
    moved = ("stock_reserved", "stock_sold", "stock_released", "stock_returned")
    quantity = sf.coalesce(*(f"{column}.quantity" for column in moved)).cast("bigint")
    return _moves(stock_events, "stock.events", quantity.alias("amount"))


def _moves(events: DataFrame, topic: str, *columns: Column) -> DataFrame:
    order_id = sf.coalesce(*(sf.col(f"{column}.order_id") for column in _columns_with_order_id(topic)))
    moves = events.select("event_id", order_id.alias("order_id"), "event_type", "event_time", *columns)
    return moves.where("order_id IS NOT NULL")


@cache
def _columns_with_order_id(topic: str) -> tuple[str, ...]:
    """Silver columns of the event types that name an order, by their schemas."""
    schemas = current_events(load_schemas(), topic)
    return tuple(column_of(s.type) for s in schemas if "order_id" in {f["name"] for f in s.definition["fields"]})
