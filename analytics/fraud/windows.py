"""Measures of facts in hopping windows: how each measure grew, moment by moment, and the features it comes to.

More facts, early or late, can only raise a measure, never lower it. This is why an alert is never taken back.
"""

from dataclasses import dataclass
from functools import cache

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as sf

from analytics.fraud.facts import ATTEMPT, DECLINE, PURCHASE, SUBJECT
from analytics.fraud.rules import Measure, Rules

MINUTE = 60_000


def hopping_window(rules: Rules) -> Column:
    """The windows that a fact is in, aligned to 1970: Spark makes a row for each, with a struct of start and end."""
    windows = rules.windows
    return sf.window(sf.timestamp_millis("at"), f"{windows.minutes} minutes", f"{windows.every} minutes")


def growth(facts: DataFrame, rules: Rules) -> DataFrame:
    """One row per subject and window: for each measure the moments it grew, as array<struct<at, value>>."""
    steps = _steps(rules)
    measured = _with_usual(facts, rules).withColumn("times_usual", sf.expr("amount div usual"))
    return measured.groupBy(*SUBJECT, steps.window).agg(*steps.gathered).select(*steps.shown)


def features(growth: DataFrame) -> DataFrame:
    """One row per subject and window: what each measure came to, and the payment most out of line with its history.

    `minutes` are those in which any of it happened. They tell where to look when the window is computed again.
    """
    return growth.select(
        *SUBJECT,
        sf.timestamp_millis("window_start").alias("window_start"),
        sf.timestamp_millis("window_end").alias("window_end"),
        *(reached(sf.col(measure)).alias(measure) for measure in ("attempts", "declines", "tokens", "accounts")),
        "purchases",
        sf.col("most.amount").alias("largest"),
        "most.currency",
        "most.usual",
        "most.times_usual",
        sf.transform("minutes", sf.timestamp_millis).alias("minutes"),
    )


def reached(trace: Column) -> Column:
    """Final value of a measure: 0 where nothing was counted, null where it does not apply to this kind of subject."""
    return sf.when(trace.isNotNull(), sf.coalesce(sf.array_max(sf.transform(trace, lambda it: it["value"])), sf.lit(0)))


@dataclass(frozen=True)
class _Steps:
    window: Column
    gathered: list[Column]
    shown: list[Column]


@cache
def _steps(rules: Rules) -> _Steps:
    """Builds the expressions once: each is a call into the JVM, and the stream of alerts needs them in every batch."""
    fact = sf.col("fact")
    attempt = sf.struct("at", "payment_id", "other", "amount", "currency", "usual", "times_usual")
    measures: dict[Measure, Column] = {
        "attempts": _counted(sf.col("attempted.at")),
        "declines": _counted(sf.col("declined")),
        "tokens": sf.when(sf.col("subject_kind") == "customer", _distinct_others(rules)),
        "accounts": sf.when(sf.col("subject_kind") == "token", _distinct_others(rules)),
        "times_usual": sf.transform("attempted", lambda it: _step(it["at"], it["times_usual"])),
    }
    return _Steps(
        window=hopping_window(rules).alias("window"),
        gathered=[
            sf.sort_array(sf.collect_list(sf.when(fact == ATTEMPT, attempt))).alias("attempted"),
            sf.sort_array(sf.collect_list(sf.when(fact == DECLINE, sf.col("at")))).alias("declined"),
            sf.count_if(fact == PURCHASE).alias("purchases"),
            sf.sort_array(sf.collect_set(sf.col("at") - sf.pmod("at", sf.lit(MINUTE)))).alias("minutes"),
        ],
        shown=[
            *map(sf.col, SUBJECT),
            sf.unix_millis("window.start").alias("window_start"),
            sf.unix_millis("window.end").alias("window_end"),
            *(trace.alias(name) for name, trace in measures.items()),
            sf.col("purchases"),
            sf.array_max(sf.transform("attempted", _how_unusual)).alias("most"),
            sf.col("minutes"),
        ],
    )


def _with_usual(facts: DataFrame, rules: Rules) -> DataFrame:
    """Adds what the customer usually spends: the n-th smallest of the purchases before (see rules.toml).

    Each pass keeps the smallest amount so far and hands the larger ones on, like one step of an insertion sort: of what
    n - 1 passes hand on, the smallest is the n-th smallest. Sorting all earlier purchases of every fact would take time
    quadratic in a customer's history.
    """
    by_time = Window.partitionBy(*SUBJECT, "currency").orderBy("at")
    earlier_rows = by_time.rowsBetween(Window.unboundedPreceding, -1)
    earlier_moments = by_time.rangeBetween(Window.unboundedPreceding, -1)
    amount = sf.col("handed_on")
    passed = facts.withColumn("handed_on", sf.when(sf.col("fact") == PURCHASE, sf.col("amount")))
    for _ in range(rules.history.purchases - 1):
        smallest = sf.min(amount).over(earlier_rows)
        larger = sf.when(amount.isNotNull() & smallest.isNotNull(), sf.greatest(amount, smallest))
        passed = passed.withColumn("handed_on", larger)
    usual = sf.nullif(sf.min(amount).over(earlier_moments), sf.lit(0))
    return passed.withColumn("usual", usual).drop("handed_on")


def _counted(moments: Column) -> Column:
    return sf.transform(moments, lambda at, n: _step(at, n + 1))


def _distinct_others(rules: Rules) -> Column:
    """Traces when the first, the second, ... different token of a customer (or customer of a token) turned up."""
    own = sf.filter("attempted", lambda it: ~it["other"].isin(*rules.tokens.shared))
    others = sf.transform(own, lambda it: it["other"])

    def turned_up(other: Column, n: Column) -> Column:
        first = sf.get(own, (sf.array_position(others, other) - 1).cast("int"))
        return _step(first["at"], n + 1)

    return sf.transform(sf.array_distinct(others), turned_up)


def _step(at: Column, value: Column) -> Column:
    return sf.struct(at.alias("at"), value.cast("long").alias("value"))


def _how_unusual(attempt: Column) -> Column:
    names = ("times_usual", "amount", "currency", "usual")
    return sf.struct(*(attempt[name].alias(name) for name in names))
