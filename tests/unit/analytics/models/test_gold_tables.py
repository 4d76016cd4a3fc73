"""Gold tables computed from a few carts and orders whose story is known."""

from datetime import date, timedelta
from typing import Any

import pytest
from pyspark.sql import SparkSession

from analytics.models import GOLD
from analytics.models.scopes.shopping import SHOPPING
from tests.roll import NOON
from tests.unit.analytics.recomputed import Rows, kept, recomputed, rows_by_key, small
from tests.unit.analytics.stories import MUG, POT, Teller, listed, renamed, silver_of, told

TABLES = [table for table in GOLD if table.scope is SHOPPING]
NEXT_DAY = NOON + timedelta(days=1)
Gold = dict[str, Rows]


def paid(name: str, at: timedelta = timedelta()) -> Teller:
    """Buys three mugs for 36.00."""
    story = Teller(name, NOON + at).opens().adds(MUG).sets(MUG, 3).adds(POT).removes(POT)
    return story.checks_out().gets_stock().is_confirmed().is_captured()


@pytest.fixture(scope="module")
def gold(spark: SparkSession) -> Gold:
    stories = [
        paid("bought"),
        paid("refunded").wait(days=1).is_cancelled("customer").is_refunded(),
        Teller("declined", NOON).opens().adds(POT).checks_out().gets_stock().is_declined(),
        Teller("left", NOON).opens().adds(POT).wait(minutes=45).adds(MUG, 2),
        Teller("returned", NOON).opens().adds(MUG).wait(minutes=45).checks_out(),
        Teller("emptied", NOON).opens().adds(MUG).removes(MUG).wait(hours=1).is_forgotten(),
        paid("later", timedelta(hours=2)),
    ]
    events = told(listed(MUG), listed(POT), renamed(MUG, NOON + timedelta(hours=1), "Mug, large"), *stories)
    silver = {table: kept(frame.drop("batch")) for table, frame in silver_of(small(spark), events).items()}
    frames = recomputed(TABLES, silver)
    return {table.name: rows_by_key(table, frames[table.name]) for table in TABLES}


def order(gold: Gold, name: str) -> dict[str, Any]:
    return gold["orders"][(f"order-of-{name}",)]


def test_a_cart_has_the_lines_and_the_status_that_its_events_leave(gold: Gold) -> None:
    cart = gold["carts"][("bought",)]
    assert (cart["status"], cart["pieces"], cart["value"], cart["order_id"]) == (
        "checked_out", 3, 3600, "order-of-bought",
    )  # fmt: skip
    assert [(line["sku"], line["quantity"]) for line in cart["lines"]] == [(MUG, 3)]
    assert gold["carts"][("left",)]["status"] == "open"
    assert gold["carts"][("emptied",)]["status"] == "abandoned"


def test_an_order_joins_what_all_services_recorded(gold: Gold) -> None:
    bought = order(gold, "bought")
    assert (bought["status"], bought["payment_status"], bought["total"], bought["captured"]) == (
        "confirmed", "captured", 3600, 3600,
    )  # fmt: skip
    assert (bought["pieces_reserved"], bought["pieces_sold"], bought["pieces_returned"]) == (3, 3, 0)
    assert bought["cart_id"] == "bought"
    assert bought["shopping_ms"] == 50
    assert order(gold, "declined")["reason"] == "payment_declined"
    assert order(gold, "declined")["pieces_released"] == 1
    assert order(gold, "refunded")["refunded"] == 3600
    assert order(gold, "returned")["status"] == "placed"


def test_an_order_has_the_name_that_the_product_had_when_it_was_placed(gold: Gold) -> None:
    assert [line["product_name"] for line in order(gold, "bought")["lines"]] == [f"{MUG} as listed"]
    assert [line["product_name"] for line in order(gold, "later")["lines"]] == ["Mug, large"]


def test_money_is_conserved_when_orders_are_refunded(gold: Gold) -> None:
    def total(figure: str) -> int:
        return sum(row[figure] for row in gold["sales_per_minute"].values())

    confirmed = sum(row["total"] for row in gold["orders"].values() if row["status"] == "confirmed")
    assert total("net_revenue") == total("captured") - total("refunded") == confirmed == 7200


def test_a_refund_is_booked_in_the_minute_in_which_it_happened(gold: Gold) -> None:
    at_noon = gold["sales_per_minute"][(NOON, "EUR")]
    assert (at_noon["orders"], at_noon["items"], at_noon["revenue"], at_noon["cancelled_revenue"]) == (2, 6, 7200, 0)
    next_day = gold["sales_per_minute"][(NEXT_DAY, "EUR")]
    assert (next_day["orders"], next_day["cancelled_orders"], next_day["net_revenue"]) == (0, 1, -3600)


def test_product_sales_are_counted_by_day(gold: Gold) -> None:
    mugs = gold["product_sales"][(date(2026, 3, 2), MUG, "EUR")]
    assert (mugs["carts"], mugs["orders"], mugs["units"], mugs["revenue"]) == (6, 3, 9, 10800)
    back = gold["product_sales"][(date(2026, 3, 3), MUG, "EUR")]
    assert (back["units"], back["returned_units"], back["returned_revenue"]) == (0, 3, 3600)


def test_the_funnel_follows_the_carts_of_an_hour(gold: Gold) -> None:
    noon = gold["funnel"][(NOON,)]
    stages = ("opened", "with_items", "checked_out", "placed", "reserved", "authorized", "confirmed", "cancelled")
    assert [noon[stage] for stage in stages] == [6, 6, 4, 4, 3, 2, 2, 2]
    assert (noon["cancelled_customer"], noon["cancelled_payment_declined"]) == (1, 1)
    assert noon["conversion"] == round(2 / 6, 4)


def test_a_cart_is_abandoned_after_half_an_hour_with_something_in_it(gold: Gold) -> None:
    first, second = gold["abandoned_carts"][("left", 1)], gold["abandoned_carts"][("left", 2)]
    assert (first["value"], first["came_back"], first["moves"]) == (3550, True, 2)
    assert (second["value"], second["came_back"], second["abandoned_at"]) == (
        5950, False, NOON + timedelta(minutes=75, milliseconds=20),
    )  # fmt: skip
    returned = gold["abandoned_carts"][("returned", 1)]
    assert (returned["came_back"], returned["bought_later"]) == (True, True)
    assert {cart for cart, _ in gold["abandoned_carts"]} == {"left", "returned"}
