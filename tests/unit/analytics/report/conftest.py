"""Lakes for the tests of reports and analysts: tables as the catalog describes them, empty or with one order."""

from datetime import UTC, datetime

import pytest

from analytics.catalog import CORE_TABLES
from analytics.lake import LakeFiles
from tests.unit.analytics.delta import create, insert

NOON = datetime(2026, 11, 16, 12, tzinfo=UTC)
TRICKY = "<script>alert('mug')</script>"


@pytest.fixture
def empty(lake: LakeFiles) -> LakeFiles:
    """All tables that `till lake run` makes, without a row."""
    for name in CORE_TABLES:
        create(lake, name)
    return lake


@pytest.fixture
def sold(empty: LakeFiles) -> LakeFiles:
    """One order, of a product whose name is meant to break the page."""
    line = {"sku": "MUG-1", "name": TRICKY, "product_name": TRICKY, "quantity": 2, "unit_price": 650, "currency": "EUR"}
    order = {"order_id": "o1", "status": "confirmed", "total": 1300, "currency": "EUR", "captured": 1300, "refunded": 0}
    insert(empty, "gold.orders", [order | {"lines": [line], "deciding_ms": 420}])
    minute = {"minute": NOON, "currency": "EUR", "orders": 1, "items": 2, "revenue": 1300, "cancelled_revenue": 0}
    insert(empty, "gold.sales_per_minute", [minute | {"net_revenue": 1300}])
    product = {"day": NOON.date(), "sku": "MUG-1", "currency": "EUR", "carts": 1, "orders": 1, "units": 2}
    insert(empty, "gold.product_sales", [product | {"revenue": 1300, "returned_units": 0, "returned_revenue": 0}])
    steps = ("opened", "with_items", "checked_out", "placed", "reserved", "authorized", "confirmed")
    insert(empty, "gold.funnel", [{"hour": NOON, "conversion": 1.0, **dict.fromkeys(steps, 1)}])
    return empty
