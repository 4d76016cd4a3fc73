"""Facts about customers and payment tokens, the alerts they lead to, and that an alert is never taken back."""

import json
from collections import defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import replace
from datetime import timedelta
from itertools import pairwise
from random import Random
from typing import Any
from uuid import uuid5

import pytest
from pyspark.sql import DataFrame, Row, SparkSession, Window
from pyspark.sql import functions as sf
from pyspark.testing import assertDataFrameEqual

from analytics.fraud import windows
from analytics.fraud.alerts import NAMESPACE, alerts_from_facts
from analytics.fraud.facts import FACT, SUBJECT, facts
from analytics.fraud.rules import load_rules
from analytics.fraud.stream import facts_in_state, state_of_subjects
from analytics.fraud.windows import features, growth
from analytics.incremental.definition import GoldTable
from analytics.models.marts.fraud_alerts import fraud_alerts
from analytics.models.marts.fraud_features import fraud_features
from analytics.models.scopes.fraud_subjects import SUBJECTS
from shared.envelope import millis
from tests.roll import NOON, ShopEvent, numbered
from tests.unit.analytics.fraud.payments import Happened, Payment, after, bought, failed, silver_payments
from tests.unit.analytics.incremental.refreshed import step
from tests.unit.analytics.recomputed import kept, small

RULES = load_rules()
HISTORIES, EVENTS = 12, 60


def story() -> Iterator[Happened]:
    """Tells of one customer for each rule. At noon a window begins, and another is half over."""
    for n in range(20):
        yield from bought(f"busy-{n}", "busy", n * 10)
    for n in range(19):
        yield from bought(f"keen-{n}", "keen", n * 10)
    for n in range(8):
        yield from failed(f"tester-{n}", "tester", n * 5)
        yield from failed(f"cards-{n}", "cards", n * 400, f"tok_declined_cards_{n}")
        yield from failed(f"ring-{n}", f"ring-{n % 5}", n * 30, "tok_declined_ring")
        yield from failed(f"poor-{n}", "poor", n * 200)
    for n in range(4):
        yield from bought(f"small-{n}", "small", n * 4000, 1000 + n)
        yield Payment(f"steal-{n}", "thief", token=f"tok_ok_stolen_{n}").asked(n)
    yield from bought("small-9", "small", 20_000, 99_900)
    for n in range(3):
        yield from bought(f"other-{n}", "traveller", n, 5)
    yield Payment("other-9", "traveller", 100_000, currency="JPY").asked(60)
    held = Payment("held", "held")
    yield from (held.held(0), held.approved(100), held.asked(100), held.paid(101))


@pytest.fixture(scope="module")
def payments(spark: SparkSession) -> DataFrame:
    return silver_payments(spark, numbered(story())).persist()


@pytest.fixture(scope="module")
def counted(payments: DataFrame) -> Mapping[tuple[str, int], Row]:
    """Features by subject and by the minute, counted from noon, at which the window begins."""
    found = features(growth(facts(payments, RULES), RULES))
    rows = found.withColumn("begins", sf.unix_millis("window_start")).collect()
    return {(row["subject"], (row["begins"] - millis(NOON)) // 60_000): row for row in rows}


@pytest.fixture(scope="module")
def raised(payments: DataFrame) -> Mapping[str, list[Row]]:
    rows = alerts_from_facts(facts(payments, RULES), RULES).orderBy("window_start", "rule", "score").collect()
    by_subject: dict[str, list[Row]] = defaultdict(list)
    for row in rows:
        by_subject[row["subject"]].append(row)
    return by_subject


def figures(row: Row, *names: str) -> tuple[Any, ...]:
    return tuple(row[name] for name in names)


def test_a_payment_counts_in_every_window_that_it_lies_in(
    counted: Mapping[tuple[str, int], Row],
) -> None:
    names = ("attempts", "declines", "purchases", "tokens")
    assert {start: figures(row, *names) for (subject, start), row in counted.items() if subject == "poor"} == {
        -5: (2, 2, 0, 0),
        0: (3, 3, 0, 0),
        5: (3, 3, 0, 0),
        10: (3, 3, 0, 0),
        15: (3, 3, 0, 0),
        20: (2, 2, 0, 0),
    }
    assert figures(counted["busy", 0], *names) == (20, 0, 20, 0)


def test_a_payment_that_was_held_and_approved_counts_once(counted: Mapping[tuple[str, int], Row]) -> None:
    assert figures(counted["held", 0], "attempts", "purchases") == (1, 1)


def test_a_customer_is_measured_by_own_tokens_and_a_token_by_its_customers(
    counted: Mapping[tuple[str, int], Row],
) -> None:
    assert figures(counted["thief", 0], "subject_kind", "tokens", "accounts") == ("customer", 4, None)
    assert figures(counted["tok_declined_ring", 0], "subject_kind", "tokens", "accounts") == ("token", None, 5)
    assert ("tok_ok", 0) not in counted
    assert ("tok_declined", 0) not in counted


def test_an_amount_is_compared_with_what_the_customer_paid_before(counted: Mapping[tuple[str, int], Row]) -> None:
    names = ("largest", "currency", "usual", "times_usual")
    [last] = [row for (subject, start), row in counted.items() if subject == "small" and start == 330]
    assert figures(last, *names) == (99_900, "EUR", 1002, 99)
    assert figures(counted["small", 0], *names) == (1000, "EUR", None, None)


def test_a_customer_who_pays_in_another_currency_has_no_history_in_it(counted: Mapping[tuple[str, int], Row]) -> None:
    assert figures(counted["traveller", 0], "attempts", "usual", "times_usual") == (4, None, None)


def test_each_rule_finds_its_suspect_and_nobody_else(raised: Mapping[str, list[Row]]) -> None:
    found = {subject: {(row["rule"], row["score"]) for row in rows} for subject, rows in raised.items()}
    assert found == {
        "busy": {("attempts", 50)},
        "tester": {("declines", 60), ("declines", 95)},
        "thief": {("many cards", 60)},
        "tok_declined_ring": {("many accounts", 60), ("declined card", 60), ("declined card", 95)},
        "small": {("large basket", 50)},
    }


def test_an_alert_says_why_it_was_raised_and_when_the_limit_was_reached(raised: Mapping[str, list[Row]]) -> None:
    mild, *_ = [row for row in raised["tester"] if row["score"] == 60]
    assert mild["reasons"] == ["at least 4 declined payments of one customer within 10 minutes"]
    assert figures(mild, "customer_id", "payment_token", "at_least", "value") == ("tester", "", 4, 8)
    assert mild["reached_at"].timestamp() == after(3 * 5 + 1).timestamp()
    assert mild["at"] == mild["window_end"] == mild["window_start"] + timedelta(minutes=10)
    assert raised["tok_declined_ring"][0]["payment_token"] == "tok_declined_ring"
    assert raised["tok_declined_ring"][0]["customer_id"] == ""


def test_the_id_of_an_alert_is_a_uuid5_of_its_content(raised: Mapping[str, list[Row]]) -> None:
    for row in (row for rows in raised.values() for row in rows):
        content = {"rule": row["rule"], "score": row["score"], "reason": row["reasons"][0]}
        content |= {"subject_kind": row["subject_kind"], "subject": row["subject"]}
        content |= {name: round(row[name].timestamp() * 1000) for name in ("window_start", "window_end")}
        assert row["alert_id"] == str(uuid5(NAMESPACE, json.dumps(content, separators=(",", ":"))))


def histories() -> list[list[ShopEvent]]:
    """Random histories of different people, so that one job judges them all, in few windows, so that limits are met."""
    return [numbered(_history(Random(seed), f"{seed}")) for seed in range(HISTORIES)]


def _history(chance: Random, name: str) -> Iterator[Happened]:
    for n in range(EVENTS // 2):
        customer, token = f"{name}-{chance.randrange(3)}", chance.choice(["tok_ok", f"tok_x_{name}", f"tok_{n}_{name}"])
        payment = Payment(f"{name}-{n}", customer, chance.choice([100, 150, 900, 5000]), token)
        at = chance.uniform(0, 900)
        yield payment.held(at) if chance.random() < 0.1 else payment.asked(at)
        yield payment.paid(at + 300 * chance.random()) if chance.random() < 0.5 else payment.declined(at + 1)


def arrived(history: list[ShopEvent], count: int, seed: int) -> list[ShopEvent]:
    """The events that arrive first: that many, late ones before early ones."""
    return Random(seed).sample(history, len(history))[:count]


def cuts(count: int) -> list[list[ShopEvent]]:
    """All histories at that many cuts, each with people of its own, so that one job judges them all."""
    return [
        [
            _renamed(shop_event, f"cut {cut} ")
            for n, it in enumerate(histories())
            for shop_event in arrived(it, EVENTS * cut // count, n)
        ]
        for cut in range(1, count + 1)
    ]


def _renamed(shop_event: ShopEvent, name: str) -> ShopEvent:
    event = shop_event.event
    own = {"payment_token": name + event.payment_token} if hasattr(event, "payment_token") else {}
    named = replace(event, customer_id=name + event.customer_id, payment_id=name + event.payment_id, **own)
    return replace(shop_event, event=named, event_id=name + shop_event.event_id)


def raised_at_cuts(spark: SparkSession, count: int) -> list[set[tuple[Any, ...]]]:
    """Alerts at each cut. Their ids are left out, as they differ from cut to cut with the names of the people."""
    every = [shop_event for cut in cuts(count) for shop_event in cut]
    found = alerts_from_facts(facts(silver_payments(spark, every), RULES), RULES)
    raised: list[set[tuple[Any, ...]]] = [set() for _ in range(count)]
    for kind, named, *rest in found.select(*SUBJECT, "rule", "score", "window_start").collect():
        _, cut, subject = named.split(" ", 2)
        raised[int(cut) - 1].add((kind, subject, *rest))
    return raised


def taken_back(raised: list[set[tuple[Any, ...]]]) -> set[tuple[Any, ...]]:
    return {alert for sooner, later in pairwise(raised) for alert in sooner - later}


def test_an_alert_is_never_taken_back_however_late_other_events_arrive(spark: SparkSession) -> None:
    raised = raised_at_cuts(spark, 6)
    assert taken_back(raised) == set()
    assert len({rule for _, _, rule, *_ in raised[-1]}) >= 4, "the histories should be worth looking at"
    assert len(raised[0]) < len(raised[-1])


def test_a_measure_that_can_shrink_is_noticed(spark: SparkSession, monkeypatch: pytest.MonkeyPatch) -> None:
    """If the usual amount were the largest one, a purchase that arrives late would raise it."""

    def with_largest(facts: DataFrame, _rules: object) -> DataFrame:
        before = Window.partitionBy(*SUBJECT, "currency").orderBy("at").rangeBetween(Window.unboundedPreceding, -1)
        return facts.withColumn("usual", sf.max(sf.when(sf.col("fact") == "purchase", sf.col("amount"))).over(before))

    monkeypatch.setattr(windows, "_with_usual", with_largest)
    assert taken_back(raised_at_cuts(spark, 6))


def test_the_usual_amount_is_the_third_smallest_of_the_purchases_before(spark: SparkSession) -> None:
    """Sorting all earlier purchases is the plain way to say it, and the oracle of the fast one."""
    found = facts(silver_payments(spark, [shop_event for history in histories() for shop_event in history]), RULES)
    before = Window.partitionBy(*SUBJECT, "currency").orderBy("at").rangeBetween(Window.unboundedPreceding, -1)
    earlier = sf.collect_list(sf.when(sf.col("fact") == "purchase", sf.col("amount"))).over(before)
    expected = found.withColumn("usual", sf.get(sf.sort_array(earlier), sf.lit(RULES.history.purchases - 1)))
    assertDataFrameEqual(windows._with_usual(found, RULES), expected)


def test_an_event_that_arrives_twice_makes_no_difference_to_the_stream(payments: DataFrame) -> None:
    columns = (*SUBJECT, *FACT)
    in_state = facts_in_state(state_of_subjects(payments.unionByName(payments), RULES))
    assertDataFrameEqual(in_state.select(*columns), facts(payments, RULES).select(*columns))


@pytest.mark.parametrize("table", [fraud_features, fraud_alerts], ids=lambda table: table.name)
def test_refreshed_tables_of_fraud_equal_recomputed_ones(spark: SparkSession, table: GoldTable) -> None:
    """Half of each history arrives in random order, then some of the rest."""
    old = [shop_event for n, history in enumerate(histories()) for shop_event in arrived(history, EVENTS // 2, n)]
    known = {shop_event.event_id for shop_event in old}
    new = [shop_event for history in histories() for shop_event in history if shop_event.event_id not in known][::7]
    older, arriving = (kept(silver_payments(small(spark), events)) for events in (old, new))
    one = step(SUBJECTS, (fraud_features,), {"payment_events": older}, {"payment_events": arriving})
    one.assert_equals_full_recomputation(table)
    assert one.found.after["payment_facts"].count() < one.after["payment_facts"].count(), "only some are looked at"
