"""The conversion funnel: how far the carts opened in an hour have come, up to the confirmed order."""

from pyspark.sql import DataFrame
from pyspark.sql import functions as sf

from analytics.incremental.definition import tally
from analytics.models.intermediate.booking import booked
from analytics.models.scopes.shopping import SHOPPING

STAGES = ("opened", "with_items", "checked_out", "placed", "reserved", "authorized", "confirmed", "cancelled")
REASONS = ("out_of_stock", "payment_declined", "fraud", "customer", "timeout")
FIGURES = (*STAGES, *(f"cancelled_{reason}" for reason in REASONS))


def _rate(part: str, whole: str) -> str:
    return f"round({{{part}}} / nullif({{{whole}}}, 0), 4)"


@tally(
    key="hour",
    figures=FIGURES,
    derived={
        "rate_with_items": _rate("with_items", "opened"),
        "rate_checked_out": _rate("checked_out", "opened"),
        "rate_confirmed": _rate("confirmed", "checked_out"),
        "conversion": _rate("confirmed", "opened"),
    },
    scope=SHOPPING,
)
def funnel(cart_histories: DataFrame, order_processes: DataFrame) -> DataFrame:
    """One row per hour in which carts were opened: how many of them were filled, checked out, paid and confirmed."""
    return _of_carts(cart_histories).unionByName(_of_orders(order_processes))


def _of_carts(cart_histories: DataFrame) -> DataFrame:
    added = sf.exists("moves", lambda move: move["kind"] == "ItemAdded")
    figures = {"opened": sf.lit(1), "with_items": added, "checked_out": sf.col("checked_out_at").isNotNull()}
    return _row(booked(cart_histories, [], FIGURES, (sf.col("opened_at"), figures)))


def _of_orders(order_processes: DataFrame) -> DataFrame:
    """Counts an order in the hour of its cart, so it is left out while its cart is unknown."""
    cancelled = sf.col("cancelled_at").isNotNull()
    figures = {stage: sf.col(f"{stage}_at").isNotNull() for stage in STAGES[3:]}
    reasons = {f"cancelled_{reason}": cancelled & (sf.col("reason") == reason) for reason in REASONS}
    return _row(booked(order_processes, [], FIGURES, (sf.col("cart_opened_at"), figures | reasons)))


def _row(entries: DataFrame) -> DataFrame:
    return entries.select(sf.date_trunc("hour", "at").alias("hour"), *FIGURES)
