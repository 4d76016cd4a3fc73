"""One row an order, with what order, payment and stock said about it: what every table about orders is made of."""

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as sf

from analytics.gold.definition import Silver
from analytics.gold.pruning import minutes_of

STEPS = {
    "OrderPlaced": "placed_at",
    "PaymentRequested": "reserved_at",
    "OrderHeld": "held_at",
    "PaymentAuthorized": "authorized_at",
    "OrderConfirmed": "confirmed_at",
    "PaymentCaptured": "captured_at",
    "OrderCancelled": "cancelled_at",
    "PaymentRefunded": "refunded_at",
}
STATUSES = {
    "cancelled_at": "cancelled",
    "confirmed_at": "confirmed",
    "held_at": "in_review",
    "reserved_at": "reserved",
    "placed_at": "placed",
}
"""The first of these that has happened says what the order is."""
PAYMENT_STATUSES = {
    "AuthorizationRequested": "authorizing",
    "PaymentAuthorized": "authorized",
    "PaymentHeldForReview": "held",
    "PaymentApproved": "approved",
    "PaymentDeclined": "declined",
    "PaymentCancelled": "cancelled",
    "CaptureRequested": "capturing",
    "PaymentCaptured": "captured",
    "CaptureDeclined": "capture_declined",
    "VoidRequested": "voiding",
    "PaymentVoided": "voided",
    "RefundRequested": "refunding",
    "PaymentRefunded": "refunded",
}
"""The last of these that has happened says what the payment is."""
SUMS = {
    "PaymentCaptured": "captured",
    "PaymentRefunded": "refunded",
    "StockReserved": "pieces_reserved",
    "StockSold": "pieces_sold",
    "StockReleased": "pieces_released",
    "StockReturned": "pieces_returned",
}


def order_processes(silver: Silver) -> DataFrame:
    """One row for each order that any service has named."""
    placed = sf.col("placed")
    pieces = sf.aggregate(placed["lines"], sf.lit(0).cast("bigint"), lambda sum_, line: sum_ + line["quantity"])
    minutes = sf.concat("own_minutes", sf.coalesce("cart_minutes", "own_minutes"))
    return (
        _heard(silver)
        .withColumn("cart_id", placed["cart_id"])
        .join(_carts(silver), "cart_id", "left")
        .select(
            "*",
            placed["customer_id"].alias("customer_id"),
            placed["lines"].alias("placed_lines"),
            pieces.alias("items"),
            placed["total"]["amount"].alias("total"),
            sf.coalesce(placed["total"]["currency"], "paid_currency").alias("currency"),
            sf.coalesce(*(sf.when(sf.col(c).isNotNull(), word) for c, word in STATUSES.items())).alias("status"),
            sf.array_sort(sf.array_distinct(minutes)).alias("minutes"),
        )
    )


def _heard(silver: Silver) -> DataFrame:
    """What order, payment and stock said: a row for each order that any of them has named."""
    words = sf.create_map(*(sf.lit(word) for pair in PAYMENT_STATUSES.items() for word in pair))
    return (
        silver["order_moves"]
        .groupBy("order_id")
        .agg(
            sf.max("placed").alias("placed"),
            sf.max("reason").alias("reason"),
            sf.max("payment_id").alias("payment_id"),
            sf.max("currency").alias("paid_currency"),
            words[sf.max_by("event_type", "payment_version")].alias("payment_status"),
            sf.coalesce(_of("PaymentCaptured", "reference"), _of("PaymentAuthorized", "reference")).alias("reference"),
            _of("PaymentRefunded", "reference").alias("refund_reference"),
            *(_of(event, "event_time").alias(column) for event, column in STEPS.items()),
            *(_sum(event, "amount").alias(column) for event, column in SUMS.items()),
            sf.count("*").alias("events"),
            minutes_of("event_time").alias("own_minutes"),
        )
    )


def _carts(silver: Silver) -> DataFrame:
    return silver["cart_histories"].select(
        "cart_id",
        sf.col("opened_at").alias("cart_opened_at"),
        "checked_out_at",
        sf.col("minutes").alias("cart_minutes"),
    )


def _of(event_type: str, column: str) -> Column:
    """At most one event of a type happens to an order; were it more, all readers would still agree on one."""
    return sf.min(sf.when(sf.col("event_type") == event_type, sf.col(column)))


def _sum(event_type: str, column: str) -> Column:
    return sf.coalesce(sf.sum(sf.when(sf.col("event_type") == event_type, sf.col(column))), sf.lit(0)).cast("bigint")
