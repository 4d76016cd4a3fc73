"""All that the order, payment and stock services recorded about an order, in one row. Tables about orders read it."""

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as sf

from analytics.incremental.scope import minutes_of

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
"""Status of an order by the first of these times that is set."""
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
"""Status of a payment by its last event."""
SUMS = {
    "PaymentCaptured": "captured",
    "PaymentRefunded": "refunded",
    "StockReserved": "pieces_reserved",
    "StockSold": "pieces_sold",
    "StockReleased": "pieces_released",
    "StockReturned": "pieces_returned",
}


def order_processes(order_moves: DataFrame, cart_histories: DataFrame) -> DataFrame:
    """One row per order that any service has named."""
    placed = sf.col("placed")
    pieces = sf.aggregate(placed["lines"], sf.lit(0).cast("bigint"), lambda sum_, line: sum_ + line["quantity"])
    minutes = sf.concat("own_minutes", sf.coalesce("cart_minutes", "own_minutes"))
    return (
        _folded(order_moves)
        .withColumn("cart_id", placed["cart_id"])
        .join(_carts(cart_histories), on="cart_id", how="left")
        .select(
            "*",
            placed["customer_id"].alias("customer_id"),
            placed["lines"].alias("placed_lines"),
            pieces.alias("items"),
            placed["total"]["amount"].alias("total"),
            sf.coalesce(placed["total"]["currency"], "paid_currency").alias("currency"),
            sf.coalesce(*(sf.when(sf.col(c).isNotNull(), status) for c, status in STATUSES.items())).alias("status"),
            sf.array_sort(sf.array_distinct(minutes)).alias("minutes"),
        )
    )


def _folded(order_moves: DataFrame) -> DataFrame:
    """Folds the events of an order into one row."""
    statuses = sf.create_map(*(sf.lit(text) for pair in PAYMENT_STATUSES.items() for text in pair))
    return order_moves.groupBy("order_id").agg(
        sf.max("placed").alias("placed"),
        sf.max("reason").alias("reason"),
        sf.max("payment_id").alias("payment_id"),
        sf.max("currency").alias("paid_currency"),
        statuses[sf.max_by("event_type", "payment_version")].alias("payment_status"),
        sf.coalesce(_of("PaymentCaptured", "reference"), _of("PaymentAuthorized", "reference")).alias("reference"),
        _of("PaymentRefunded", "reference").alias("refund_reference"),
        *(_of(event, "event_time").alias(column) for event, column in STEPS.items()),
        *(_sum(event, "amount").alias(column) for event, column in SUMS.items()),
        sf.count("*").alias("events"),
        minutes_of("event_time").alias("own_minutes"),
    )


def _carts(cart_histories: DataFrame) -> DataFrame:
    return cart_histories.select(
        "cart_id",
        sf.col("opened_at").alias("cart_opened_at"),
        "checked_out_at",
        sf.col("minutes").alias("cart_minutes"),
    )


def _of(event_type: str, column: str) -> Column:
    """Takes a column of the event of that type. An order has at most one; if it had more, the smallest would count."""
    return sf.min(sf.when(sf.col("event_type") == event_type, sf.col(column)))


def _sum(event_type: str, column: str) -> Column:
    return sf.coalesce(sf.sum(sf.when(sf.col("event_type") == event_type, sf.col(column))), sf.lit(0)).cast("bigint")
