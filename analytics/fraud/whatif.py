"""History under other rules: which alerts there would have been, and what payment would have made of them.

Reads silver and changes nothing. What people would have done next, had they been refused, nobody knows: all that
happened is taken as it was.
"""

from collections.abc import Mapping
from dataclasses import astuple, dataclass
from datetime import datetime

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as sf

from analytics.fraud.alerts import alerts
from analytics.fraud.facts import SUBJECT, customer, facts, is_attempt, request, token
from analytics.fraud.rules import Rules
from analytics.fraud.windows import growth

ALLOWED, HELD, REFUSED = "allowed", "held", "refused"
FRAUD, HONEST, UNKNOWN = "fraud", "honest", "unknown"
SHOWN = 20


@dataclass(frozen=True)
class Span:
    """When payments were asked for, and alerts raised. Open where None."""

    start: datetime | None = None
    end: datetime | None = None

    def includes(self, moment: str) -> Column:
        since = sf.col(moment) >= sf.lit(self.start) if self.start else sf.lit(True)
        until = sf.col(moment) < sf.lit(self.end) if self.end else sf.lit(True)
        return since & until


@dataclass(frozen=True)
class Group:
    """Payments that are alike in all but their amount."""

    truth: str
    """`fraud`, `honest` or `unknown`."""
    currency: str
    today: str
    """What payment does about them under today's rules: `allowed`, `held`, `refused`."""
    other: str
    was_kept: bool
    """The money was taken, and not given back."""
    payments: int
    amount: int


@dataclass(frozen=True)
class Difference:
    payment_id: str
    order_id: str
    customer_id: str
    at: int
    """Unix milliseconds."""
    amount: int
    currency: str
    truth: str
    today: str
    other: str
    reasons: list[str]
    """Of the stricter verdict."""


@dataclass(frozen=True)
class Comparison:
    alerts: Mapping[str, tuple[int, int]]
    """By rule: how many today, and how many under the other rules."""
    groups: list[Group]
    different: int
    """Payments with another verdict."""
    differences: list[Difference]
    """The largest of these."""


def compare(payments: DataFrame, today: Rules, other: Rules, labels: Mapping[str, bool], span: Span) -> Comparison:
    """`payments` is silver.payment_events; `labels` tell which orders are known to be fraud, and which to be honest."""
    asked = _asked(payments, labels).where(span.includes("asked_at"))
    raised = [alerts(growth(facts(payments, rules), rules), rules).persist() for rules in (today, other)]
    try:
        counts = [_by_rule(found.where(span.includes("reached_at"))) for found in raised]
        judged = _judged(_judged(asked, raised[0], today, "today"), raised[1], other, "other").persist()
        try:
            return Comparison(
                alerts={rule: (counts[0].get(rule, 0), counts[1].get(rule, 0)) for rule in _names(today, other)},
                groups=_groups(judged),
                different=judged.where("today != other").count(),
                differences=_differences(judged),
            )
        finally:
            judged.unpersist()
    finally:
        for found in raised:
            found.unpersist()


def _asked(payments: DataFrame, labels: Mapping[str, bool]) -> DataFrame:
    """Every payment that was asked for, and whether it was fraud: by the labels, else by what a review came to, else by
    its being paid and kept.
    """
    asked = payments.where(is_attempt()).select(
        request("payment_id").alias("payment_id"),
        request("order_id").alias("order_id"),
        customer().alias("customer"),
        token().alias("token"),
        request("amount.amount").alias("amount"),
        request("amount.currency").alias("currency"),
        sf.col("event_time").alias("asked_at"),
    )
    said = sf.substring_index("stream_id", ":", -1).alias("payment_id")
    outcomes = payments.groupBy(said).agg(
        sf.bool_or(sf.col("payment_declined.declined_by") == "review").alias("rejected"),
        sf.bool_or(sf.col("payment_approved").isNotNull()).alias("approved"),
        sf.bool_or(sf.col("payment_captured").isNotNull()).alias("paid"),
        sf.bool_or(sf.col("payment_refunded").isNotNull()).alias("refunded"),
    )
    known = payments.sparkSession.createDataFrame(list(labels.items()), "order_id string, is_fraud boolean")
    kept = sf.col("paid") & ~sf.col("refunded")
    truth = (
        sf.when(sf.col("is_fraud"), FRAUD)
        .when(~sf.col("is_fraud"), HONEST)
        .when(sf.col("rejected"), FRAUD)
        .when(sf.col("approved") | kept, HONEST)
        .otherwise(UNKNOWN)
    )
    found = asked.join(outcomes, "payment_id", "left").join(known, "order_id", "left")
    return found.select(*asked.columns, truth.alias("truth"), kept.alias("was_kept"))


def _judged(asked: DataFrame, raised: DataFrame, rules: Rules, name: str) -> DataFrame:
    """With the verdict, by the worst alert that payment had heard of, and its reasons."""
    heard = sf.timestamp_millis(sf.unix_millis("reached_at") + rules.payment.seconds * 1000)
    forgotten = sf.timestamp_millis(sf.unix_millis("at") + rules.payment.hours * 3_600_000)
    in_force = raised.select(
        "subject_kind", "subject", "score", "reasons", heard.alias("heard"), forgotten.alias("end")
    )
    subject = sf.explode(sf.array(_subject("customer"), _subject("token")))
    then = (sf.col("asked_at") >= sf.col("heard")) & (sf.col("asked_at") < sf.col("end"))
    worst = (
        asked.select("payment_id", "asked_at", subject.alias("about"))
        .select("payment_id", "asked_at", "about.*")
        .join(in_force, [*SUBJECT])
        .where(then)
        .groupBy("payment_id")
        .agg(sf.max(sf.struct("score", "heard", "reasons")).alias("worst"))
    )
    verdict = sf.when(sf.col("worst.score") >= rules.payment.refuse, REFUSED).when(
        sf.col("worst.score") >= rules.payment.hold, HELD
    )
    return asked.join(worst, "payment_id", "left").select(
        *asked.columns,
        sf.coalesce(verdict, sf.lit(ALLOWED)).alias(name),
        sf.col("worst.reasons").alias(f"{name}_reasons"),
    )


def _subject(kind: str) -> Column:
    return sf.struct(sf.lit(kind).alias("subject_kind"), sf.col(kind).alias("subject"))


def _by_rule(raised: DataFrame) -> dict[str, int]:
    return {row["rule"]: row["count"] for row in raised.groupBy("rule").count().collect()}


def _names(*both: Rules) -> list[str]:
    return list(dict.fromkeys(rule.name for rules in both for rule in rules.rule))


def _groups(judged: DataFrame) -> list[Group]:
    alike = judged.groupBy("truth", "currency", "today", "other", "was_kept")
    rows = alike.agg(sf.count("*").alias("payments"), sf.sum("amount").alias("amount")).collect()
    return sorted((Group(**row.asDict()) for row in rows), key=astuple)


def _differences(judged: DataFrame) -> list[Difference]:
    was_stricter = (sf.col("other") == ALLOWED) | (sf.col("today") == REFUSED)
    rows = judged.where("today != other").select(
        "payment_id",
        "order_id",
        sf.col("customer").alias("customer_id"),
        sf.unix_millis("asked_at").alias("at"),
        *("amount", "currency", "truth", "today", "other"),
        sf.when(was_stricter, sf.col("today_reasons")).otherwise(sf.col("other_reasons")).alias("reasons"),
    )
    largest = rows.orderBy(sf.desc("amount"), "payment_id").limit(SHOWN)
    return [Difference(**row.asDict()) for row in largest.collect()]
