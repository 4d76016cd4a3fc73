"""Sales in tumbling windows of a minute, each figure booked in the minute in which it happened.

A confirmed order is revenue. Cancelled after all, it is taken back, in the minute of the cancelling. So, once every
payment has come to its end: revenue - cancelled_revenue = captured - refunded, of all minutes together.
"""

from pyspark.sql import DataFrame
from pyspark.sql import functions as sf

from analytics.gold.booking import booked
from analytics.gold.definition import Silver, Tally
from analytics.gold.shopping import SHOPPING, SHOPPING_READS

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


def sales(silver: Silver) -> DataFrame:
    orders = silver["order_processes"].where("currency IS NOT NULL")
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


SALES = Tally(
    name="sales_per_minute",
    about="Orders, pieces and money for each minute and currency; what was taken back is booked when it was.",
    reads=SHOPPING_READS,
    key=("minute", "currency"),
    figures=FIGURES,
    facts=sales,
    scope=SHOPPING,
    derived=(("net_revenue", "{revenue} - {cancelled_revenue}"),),
)
