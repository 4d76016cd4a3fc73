"""Facts in hopping windows: how each measure grew, moment by moment, and the features that this comes to.

Every measure only ever grows with more facts, wherever in time these belong. All else about alerts rests on that.
"""

from dataclasses import dataclass
from functools import cache

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as sf

from analytics.fraud.facts import ATTEMPT, DECLINE, PURCHASE, SUBJECT
from analytics.fraud.rules import Measure, Rules

MINUTE = 60_000


def growth(facts: DataFrame, rules: Rules) -> DataFrame:
    """A row for each subject and window: for each measure the moments it grew, as array<struct<at, value>>."""
    steps = _steps(rules)
    windows = facts.withColumn("usual", steps.usual).withColumns(
        {"times_usual": sf.expr("amount div usual"), "window_start": starts(rules)}
    )
    return windows.groupBy(*SUBJECT, "window_start").agg(*steps.gathered).select(*steps.shown)


def starts(rules: Rules) -> Column:
    """A row for each window that a fact is in, aligned to 1970."""
    hop = rules.windows.hop_ms
    last = sf.col("at") - sf.pmod("at", sf.lit(hop))
    return sf.explode(sf.array(*(last - hops * hop for hops in range(rules.windows.length_ms // hop))))


def features(growth: DataFrame) -> DataFrame:
    """What each measure has come to; and of the payments, the one most out of line with the customer's own history.

    `minutes` in which any of it happened: where to look when the window is computed again.
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
    """The measure at last; 0 where nothing was counted, null where it is not one of this kind of subject."""
    return sf.when(trace.isNotNull(), sf.coalesce(sf.array_max(sf.transform(trace, lambda it: it["value"])), sf.lit(0)))


@dataclass(frozen=True)
class _Steps:
    usual: Column
    gathered: list[Column]
    shown: list[Column]


@cache
def _steps(rules: Rules) -> _Steps:
    """Made once: each expression is a call into the JVM, and the stream of alerts needs them in every batch."""
    fact = sf.col("fact")
    attempt = sf.struct("at", "payment_id", "other", "amount", "currency", "usual", "times_usual")
    measures: dict[Measure, Column] = {
        "attempts": _counted(sf.col("asked.at")),
        "declines": _counted(sf.col("declined")),
        "tokens": sf.when(sf.col("subject_kind") == "customer", _different(rules)),
        "accounts": sf.when(sf.col("subject_kind") == "token", _different(rules)),
        "times_usual": sf.transform("asked", lambda it: _step(it["at"], it["times_usual"])),
    }
    return _Steps(
        usual=_usual(rules),
        gathered=[
            sf.sort_array(sf.collect_list(sf.when(fact == ATTEMPT, attempt))).alias("asked"),
            sf.sort_array(sf.collect_list(sf.when(fact == DECLINE, sf.col("at")))).alias("declined"),
            sf.count_if(fact == PURCHASE).alias("purchases"),
            sf.sort_array(sf.collect_set(sf.col("at") - sf.pmod("at", sf.lit(MINUTE)))).alias("minutes"),
        ],
        shown=[
            *map(sf.col, (*SUBJECT, "window_start")),
            (sf.col("window_start") + rules.windows.length_ms).alias("window_end"),
            *(trace.alias(name) for name, trace in measures.items()),
            sf.col("purchases"),
            sf.array_max(sf.transform("asked", _how_unusual)).alias("most"),
            sf.col("minutes"),
        ],
    )


def _usual(rules: Rules) -> Column:
    """What the customer usually spends, going by the purchases before (see rules.toml)."""
    before = Window.partitionBy(*SUBJECT, "currency").orderBy("at").rangeBetween(Window.unboundedPreceding, -1)
    paid = sf.collect_list(sf.when(sf.col("fact") == PURCHASE, sf.col("amount"))).over(before)
    return sf.nullif(sf.get(sf.sort_array(paid), sf.lit(rules.history.purchases - 1)), sf.lit(0))


def _counted(moments: Column) -> Column:
    return sf.transform(moments, lambda at, n: _step(at, n + 1))


def _different(rules: Rules) -> Column:
    """When the first, the second, ... of the others turned up."""
    own = sf.filter("asked", lambda it: ~it["other"].isin(*rules.tokens.shared))
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
