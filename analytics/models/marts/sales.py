"""Sales in tumbling windows of a minute. Each figure is booked in the minute in which it happened.

A confirmed order is revenue. If it is cancelled later, it is taken back in the minute of the cancellation. So once
every payment is settled, over all minutes: revenue - cancelled_revenue = captured - refunded.
"""

from pyspark.sql import DataFrame
from pyspark.sql import functions as sf

from analytics.incremental.definition import tally
from analytics.models.intermediate.booking import booked
from analytics.models.scopes.shopping import SHOPPING

FIGURES = (
    "orders",
    "items",
    "revenue",
    "cancelled_orders",
    "cancelled_items",
    "cancelled_revenue",
    "captured",
    "refunded",
)


@tally(
    key=("minute", "currency"),
    figures=FIGURES,
    derived={"net_revenue": "{revenue} - {cancelled_revenue}"},
    scope=SHOPPING,
)
def sales_per_minute(order_processes: DataFrame) -> DataFrame:
    """One row per minute and currency: orders, pieces and money. Cancellations are booked when they happen."""
    orders = order_processes.where("currency IS NOT NULL")
    one, items, total = sf.lit(1), sf.col("items"), sf.col("total")
    cancelled_after_all = sf.when(sf.col("confirmed_at").isNotNull(), sf.col("cancelled_at"))
    entries = booked(
        orders,
        [sf.col("currency")],
        FIGURES,
        (sf.col("confirmed_at"), {"orders": one, "items": items, "revenue": total}),
        (cancelled_after_all, {"cancelled_orders": one, "cancelled_items": items, "cancelled_revenue": total}),
        (sf.col("captured_at"), {"captured": sf.col("captured")}),
        (sf.col("refunded_at"), {"refunded": sf.col("refunded")}),
    )
    return entries.select(sf.date_trunc("minute", "at").alias("minute"), "currency", *FIGURES)
