"""The report and the ten questions, on gold tables as the catalog describes them. No Spark is needed."""

from typing import Any

import pytest

from analytics.lake import LakeFiles
from analytics.query.ask import ask
from analytics.query.freshness import Freshness, TableState
from analytics.report.page import render_report
from analytics.report.questions import QUESTIONS
from shared.errors import OperatorError
from tests.unit.analytics.report.conftest import NOON, TRICKY


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
