"""What is counted of customers and tokens, what of it is suspicious, and that an alert, once raised, stays as it is."""

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
from pyspark.sql import Column, DataFrame, Row, SparkSession, Window
from pyspark.sql import functions as sf

from analytics.fraud import windows
from analytics.fraud.alerts import NAMESPACE, alerts
from analytics.fraud.facts import SUBJECT, facts
from analytics.fraud.rules import load_rules
from analytics.fraud.stream import memory, remembered
from analytics.fraud.windows import features, growth
from analytics.gold.fraud import FRAUD
from shared.envelope import millis
from tests.roll import NOON, Told, numbered
from tests.unit.lake.payments import Happened, Payment, after, bought, failed, silver_payments

RULES = load_rules()
HISTORIES, EVENTS = 12, 60


def story() -> Iterator[Happened]:
    """Each customer for one rule. At noon a window begins, and another is half over."""
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
    """By subject and the minute at which the window begins."""
    rows = (
        features(growth(facts(payments, RULES), RULES)).withColumn("begins", sf.unix_millis("window_start")).collect()
    )
    return {(row["subject"], (row["begins"] - millis(NOON)) // 60_000): row for row in rows}


@pytest.fixture(scope="module")
def raised(payments: DataFrame) -> Mapping[str, list[Row]]:
    rows = alerts(growth(facts(payments, RULES), RULES), RULES).orderBy("window_start", "rule", "score").collect()
    by_subject: dict[str, list[Row]] = defaultdict(list)
    for row in rows:
        by_subject[row["subject"]].append(row)
    return by_subject


def figures(row: Row, *names: str) -> tuple[Any, ...]:
    return tuple(row[name] for name in names)


def test_payments_declines_and_purchases_are_counted_in_every_window_they_are_in(
    counted: Mapping[tuple[str, int], Row],
) -> None:
    names = ("attempts", "declines", "purchases", "tokens")
    assert {start: figures(row, *names) for (who, start), row in counted.items() if who == "poor"} == {
        -5: (2, 2, 0, 0),
        0: (3, 3, 0, 0),
        5: (3, 3, 0, 0),
        10: (3, 3, 0, 0),
        15: (3, 3, 0, 0),
        20: (2, 2, 0, 0),
    }
    assert figures(counted["busy", 0], *names) == (20, 0, 20, 0)


def test_a_payment_that_was_held_and_approved_is_one(counted: Mapping[tuple[str, int], Row]) -> None:
    assert figures(counted["held", 0], "attempts", "purchases") == (1, 1)


def test_of_tokens_only_ones_own_are_counted_and_of_a_token_its_customers(
    counted: Mapping[tuple[str, int], Row],
) -> None:
    assert figures(counted["thief", 0], "subject_kind", "tokens", "accounts") == ("customer", 4, None)
    assert figures(counted["tok_declined_ring", 0], "subject_kind", "tokens", "accounts") == ("token", None, 5)
    assert ("tok_ok", 0) not in counted
    assert ("tok_declined", 0) not in counted


def test_an_amount_is_seen_against_what_the_customer_paid_before(counted: Mapping[tuple[str, int], Row]) -> None:
    names = ("largest", "currency", "usual", "times_usual")
    [last] = [row for (who, start), row in counted.items() if who == "small" and start == 330]
    assert figures(last, *names) == (99_900, "EUR", 1002, 99)
    assert figures(counted["small", 0], *names) == (1000, "EUR", None, None)


def test_who_pays_in_another_currency_has_no_history_in_it(counted: Mapping[tuple[str, int], Row]) -> None:
    assert figures(counted["traveller", 0], "attempts", "usual", "times_usual") == (4, None, None)


def test_each_rule_finds_whom_it_is_for_and_nobody_else(raised: Mapping[str, list[Row]]) -> None:
    found = {who: {(row["rule"], row["score"]) for row in rows} for who, rows in raised.items()}
    assert found == {
        "busy": {("attempts", 50)},
        "tester": {("declines", 60), ("declines", 95)},
        "thief": {("many cards", 60)},
        "tok_declined_ring": {("many accounts", 60), ("declined card", 60), ("declined card", 95)},
        "small": {("large basket", 50)},
    }


def test_an_alert_tells_why_and_when_it_came_to_that(raised: Mapping[str, list[Row]]) -> None:
    mild, *_ = [row for row in raised["tester"] if row["score"] == 60]
    assert mild["reasons"] == ["at least 4 declined payments of one customer within 10 minutes"]
    assert figures(mild, "customer_id", "payment_token", "at_least", "value") == ("tester", "", 4, 8)
    assert mild["reached_at"].timestamp() == after(3 * 5 + 1).timestamp()
    assert mild["at"] == mild["window_end"] == mild["window_start"] + timedelta(minutes=10)
    assert raised["tok_declined_ring"][0]["payment_token"] == "tok_declined_ring"
    assert raised["tok_declined_ring"][0]["customer_id"] == ""


def test_an_alerts_id_is_a_uuid5_of_all_that_it_says(raised: Mapping[str, list[Row]]) -> None:
    for row in (row for rows in raised.values() for row in rows):
        said = {"rule": row["rule"], "score": row["score"], "reason": row["reasons"][0]}
        said |= {"subject_kind": row["subject_kind"], "subject": row["subject"]}
        said |= {name: round(row[name].timestamp() * 1000) for name in ("window_start", "window_end")}
        assert row["alert_id"] == str(uuid5(NAMESPACE, json.dumps(said, separators=(",", ":"))))


def histories() -> list[list[Told]]:
    """Random ones, each of other people: they can be judged in one go. Windows are few, so that limits are met."""
    return [numbered(_history(Random(seed), f"{seed}")) for seed in range(HISTORIES)]


def _history(chance: Random, name: str) -> Iterator[Happened]:
    for n in range(EVENTS // 2):
        customer, token = f"{name}-{chance.randrange(3)}", chance.choice(["tok_ok", f"tok_x_{name}", f"tok_{n}_{name}"])
        payment = Payment(f"{name}-{n}", customer, chance.choice([100, 150, 900, 5000]), token)
        at = chance.uniform(0, 900)
        yield payment.held(at) if chance.random() < 0.1 else payment.asked(at)
        yield payment.paid(at + 300 * chance.random()) if chance.random() < 0.5 else payment.declined(at + 1)


def heard(history: list[Told], count: int, seed: int) -> list[Told]:
    """That many of its events have been heard of, late ones before early ones."""
    return Random(seed).sample(history, len(history))[:count]


def cuts(count: int) -> list[list[Told]]:
    """All histories, at that many cuts of each: as of other people each time, so that one job judges them all."""
    return [
        [
            _renamed(told, f"cut {cut} ")
            for n, it in enumerate(histories())
            for told in heard(it, EVENTS * cut // count, n)
        ]
        for cut in range(1, count + 1)
    ]


def _renamed(told: Told, name: str) -> Told:
    event = told.event
    own = {"payment_token": name + event.payment_token} if hasattr(event, "payment_token") else {}
    named = replace(event, customer_id=name + event.customer_id, payment_id=name + event.payment_id, **own)
    return replace(told, event=named, event_id=name + told.event_id)


def raised_at_cuts(spark: SparkSession, count: int) -> list[set[tuple[Any, ...]]]:
    """What was said at each cut, by whom it was about; without ids, which tell people apart."""
    every = [told for cut in cuts(count) for told in cut]
    found = alerts(growth(facts(silver_payments(spark, every), RULES), RULES), RULES)
    said: list[set[tuple[Any, ...]]] = [set() for _ in range(count)]
    for kind, named, *what in found.select(*SUBJECT, "rule", "score", "window_start").collect():
        _, cut, subject = named.split(" ", 2)
        said[int(cut) - 1].add((kind, subject, *what))
    return said


def taken_back(said: list[set[tuple[Any, ...]]]) -> set[tuple[Any, ...]]:
    return {alert for sooner, later in pairwise(said) for alert in sooner - later}


def test_an_alert_that_was_raised_is_never_taken_back_however_late_the_rest_comes(spark: SparkSession) -> None:
    said = raised_at_cuts(spark, 6)
    assert taken_back(said) == set()
    assert len({rule for _, _, rule, *_ in said[-1]}) >= 4, "the histories should be worth looking at"
    assert len(said[0]) < len(said[-1])


def test_a_measure_that_can_shrink_would_be_seen(spark: SparkSession, monkeypatch: pytest.MonkeyPatch) -> None:
    """What a customer usually spends as the largest amount instead: a purchase that is heard of late raises it."""

    def largest(_rules: object) -> Column:
        before = Window.partitionBy(*SUBJECT, "currency").orderBy("at").rangeBetween(-(2**60), -1)
        return sf.max(sf.when(sf.col("fact") == "purchase", sf.col("amount"))).over(before)

    monkeypatch.setattr(windows, "_usual", largest)
    windows._steps.cache_clear()
    try:
        assert taken_back(raised_at_cuts(spark, 6))
    finally:
        windows._steps.cache_clear()


def test_the_streams_memory_is_a_set_duplicates_make_no_difference(spark: SparkSession, payments: DataFrame) -> None:
    twice = payments.unionByName(payments)
    assert as_set(remembered(memory(twice, RULES))) == as_set(facts(payments, RULES))
    assert remembered(memory(twice, RULES)).count() == facts(payments, RULES).count()


def as_set(frame: DataFrame) -> set[Any]:
    return {tuple(map(str, row)) for row in frame.select(*sorted(frame.columns)).collect()}


@pytest.mark.parametrize("table", FRAUD, ids=lambda table: table.name)
def test_only_windows_that_new_events_touch_change_and_their_people_suffice_to_compute_them(
    spark: SparkSession, table: Any
) -> None:
    """The old half and the new half of each history, in random order."""
    old = [told for n, history in enumerate(histories()) for told in heard(history, EVENTS // 2, n)]
    known = {told.event_id for told in old}
    new = [told for history in histories() for told in history if told.event_id not in known][::7]
    rows = {"payment_events": silver_payments(spark, [*old, *new]).persist()}
    fresh = {"payment_events": silver_payments(spark, new).persist()}
    before = table.compute({"payment_events": silver_payments(spark, old)})
    after_all = table.compute(rows)
    touched = table.touched(fresh, rows).persist()
    unit = list(table.unit)
    assert as_set(before.join(touched, unit, "left_anti")) == as_set(after_all.join(touched, unit, "left_anti"))
    narrowed = table.scope.narrowed(rows, table.scope.concerned(fresh, rows))
    assert narrowed["payment_events"].count() < rows["payment_events"].count()
    again = table.compute(table.narrowed(narrowed, touched)).join(touched, unit, "left_semi")
    assert as_set(again) == as_set(after_all.join(touched, unit, "left_semi"))
