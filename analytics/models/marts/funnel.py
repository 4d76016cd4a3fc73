"""From cart to confirmed order: how many of the carts opened in an hour have come how far by now."""

from pyspark.sql import DataFrame
from pyspark.sql import functions as sf

from analytics.gold.booking import booked
from analytics.gold.definition import Silver, Tally
from analytics.gold.shopping import SHOPPING, SHOPPING_READS

STAGES = ("opened", "with_items", "checked_out", "placed", "reserved", "authorized", "confirmed", "cancelled")
REASONS = ("out_of_stock", "payment_declined", "fraud", "customer", "timeout")
FIGURES = (*STAGES, *(f"cancelled_{reason}" for reason in REASONS))


def funnel(silver: Silver) -> DataFrame:
    return _of_carts(silver).unionByName(_of_orders(silver))


def _of_carts(silver: Silver) -> DataFrame:
    added = sf.exists("moves", lambda move: move["kind"] == "ItemAdded")
    figures = {"opened": sf.lit(1), "with_items": added, "checked_out": sf.col("checked_out_at").isNotNull()}
    return _row(booked(silver["cart_histories"], [], FIGURES, (sf.col("opened_at"), figures)))


def _of_orders(silver: Silver) -> DataFrame:
    """Of an order whose cart is not known (yet), the hour is not known either."""
    cancelled = sf.col("cancelled_at").isNotNull()
    figures = {stage: sf.col(f"{stage}_at").isNotNull() for stage in STAGES[3:]}
    reasons = {f"cancelled_{reason}": cancelled & (sf.col("reason") == reason) for reason in REASONS}
    return _row(booked(silver["order_processes"], [], FIGURES, (sf.col("cart_opened_at"), figures | reasons)))


def _row(entries: DataFrame) -> DataFrame:
    return entries.select(sf.date_trunc("hour", "at").alias("hour"), *FIGURES)


def _rate(part: str, whole: str) -> str:
    return f"round({{{part}}} / nullif({{{whole}}}, 0), 4)"


FUNNEL = Tally(
    name="funnel",
    about="Of the carts opened in an hour: how many got something in, were checked out, placed, paid and confirmed.",
    reads=SHOPPING_READS,
    key=("hour",),
    figures=FIGURES,
    facts=funnel,
    scope=SHOPPING,
    derived=(
        ("rate_with_items", _rate("with_items", "opened")),
        ("rate_checked_out", _rate("checked_out", "opened")),
        ("rate_confirmed", _rate("confirmed", "checked_out")),
        ("conversion", _rate("confirmed", "opened")),
    ),
)
