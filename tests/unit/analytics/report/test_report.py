"""The report and the ten questions, on gold tables as the catalog describes them. No Spark is needed."""

from datetime import UTC, datetime
from typing import Any

import pytest

from analytics.catalog import CORE_TABLES
from analytics.lake import LakeFiles
from analytics.query.ask import ask
from analytics.query.freshness import Freshness, TableState
from analytics.report.page import render_report
from analytics.report.questions import QUESTIONS
from shared.errors import OperatorError
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


def fresh(lake: LakeFiles) -> Freshness:
    states = [TableState(name, 0, 0, 0, lake.snapshot(name).version(), NOON, None) for name in lake.tables()]
    return Freshness(states, "Kafka at nowhere does not answer")


def answers(lake: LakeFiles, title: str) -> list[tuple[Any, ...]]:
    [question] = [question for question in QUESTIONS if question.title == title]
    return list(ask(lake, question.sql).rows)


def test_all_ten_questions_can_be_asked_of_empty_tables(empty: LakeFiles) -> None:
    assert len(QUESTIONS) == 10
    for question in QUESTIONS:
        ask(empty, question.sql)


def test_the_money_of_an_order_adds_up(sold: LakeFiles) -> None:
    [row] = answers(sold, "Does the money add up?")
    assert [str(value) for value in row] == ["EUR", "13.00", "13.00", "0.00", "0.00"]
    assert [row[0] for row in answers(sold, "Why are orders cancelled?")] == ["confirmed"]


def test_a_report_on_an_empty_shop_says_that_there_is_nothing_yet(empty: LakeFiles) -> None:
    written = render_report(empty, fresh(empty), NOON, "EUR")
    assert written.count("Nothing yet.") == 4
    assert "No alerts." in written
    assert "<dd>0.00</dd>" in written
    assert "Kafka at nowhere does not answer." in written


def test_a_report_shows_sales_and_escapes_what_customers_see(sold: LakeFiles) -> None:
    written = render_report(sold, fresh(sold), NOON, "USD")
    assert "<dt>EUR sold, net</dt><dd>13.00</dd>" in written
    assert written.count("<svg") == 3
    assert TRICKY not in written
    assert "&lt;script&gt;" in written
    assert '<td class="n">1</td>' in written


def test_a_lake_without_gold_says_how_to_make_it(lake: LakeFiles) -> None:
    with pytest.raises(OperatorError, match=r"There is no gold\.sales_per_minute yet") as refusal:
        render_report(lake, Freshness([], ""), NOON, "EUR")
    assert "till lake run" in refusal.value.hint
