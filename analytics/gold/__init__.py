"""The gold tables, each a function of silver."""

from analytics.gold.abandoned import ABANDONED
from analytics.gold.carts import CARTS
from analytics.gold.definition import Table
from analytics.gold.fraud import FRAUD
from analytics.gold.funnel import FUNNEL
from analytics.gold.orders import ORDERS
from analytics.gold.products import PRODUCTS
from analytics.gold.sales import SALES

GOLD: tuple[Table, ...] = (CARTS, ORDERS, SALES, PRODUCTS, FUNNEL, ABANDONED, *FRAUD)
"""In the order in which they are brought up to date: carts and orders tell the others where to look."""
