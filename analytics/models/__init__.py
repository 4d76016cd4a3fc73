"""The gold tables, and the staging and intermediate models that they are made of: pure functions of DataFrames."""

from analytics.incremental.definition import GoldTable
from analytics.models.marts.abandoned_carts import abandoned_carts
from analytics.models.marts.carts import carts
from analytics.models.marts.fraud_alerts import fraud_alerts
from analytics.models.marts.fraud_features import fraud_features
from analytics.models.marts.funnel import funnel
from analytics.models.marts.orders import orders
from analytics.models.marts.products import product_sales
from analytics.models.marts.sales import sales_per_minute

GOLD: tuple[GoldTable, ...] = (
    carts,
    orders,
    sales_per_minute,
    product_sales,
    funnel,
    abandoned_carts,
    fraud_features,
    fraud_alerts,
)
