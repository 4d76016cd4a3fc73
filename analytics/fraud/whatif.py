"""Judges history under other rules: the alerts there would have been, and what payment would have done about them.

Reads silver and changes nothing. Nobody knows what people would have done next if they had been refused, so everything
that happened is taken as it was.
"""

from collections.abc import Mapping
from dataclasses import astuple, dataclass
from datetime import datetime

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as sf

from analytics.fraud.alerts import alerts_from_facts
from analytics.fraud.facts import SUBJECT, customer, facts, is_attempt, request, token
from analytics.fraud.rules import Rules
from analytics.models.staging.stream_ids import id_of_stream

ALLOWED, HELD, REFUSED = "allowed", "held", "refused"
FRAUD, HONEST, UNKNOWN = "fraud", "honest", "unknown"
MOST_DIFFERENCES = 20


@dataclass(frozen=True)
class Period:
    """The time in which payments were requested and alerts raised. None leaves that end open."""

    start: datetime | None = None
    end: datetime | None = None

    def includes(self, moment: str) -> Column:
        since = sf.col(moment) >= sf.lit(self.start) if self.start else sf.lit(True)
        until = sf.col(moment) < sf.lit(self.end) if self.end else sf.lit(True)
        return since & until


@dataclass(frozen=True)
class Group:
    """Payments that agree in everything but their amount."""

    truth: str
    """`fraud`, `honest` or `unknown`."""
    currency: str
    today: str
    """Verdict under today's rules: `allowed`, `held` or `refused`."""
    other: str
    """Verdict under the other rules."""
    was_kept: bool
    """Money was taken and not given back."""
    payments: int
    amount: int


@dataclass(frozen=True)
class ChangedVerdict:
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
    """Reasons for the stricter of the two verdicts."""


@dataclass(frozen=True)
class Comparison:
    alerts: Mapping[str, tuple[int, int]]
    """Numbers of alerts by rule, under today's and under the other rules."""
    groups: list[Group]
    different: int
    """Number of payments with another verdict."""
    differences: list[ChangedVerdict]
    """The largest of those payments."""


def compare_rules(
    payments: DataFrame, today: Rules, other: Rules, labels: Mapping[str, bool], period: Period
) -> Comparison:
    """Compares two sets of rules. `payments` is silver.payment_events; `labels` says which orders were fraud."""
    requested = _requested(payments, labels).where(period.includes("requested_at"))
    raised = [alerts_from_facts(facts(payments, rules), rules).persist() for rules in (today, other)]
    try:
        counts = [_by_rule(found.where(period.includes("reached_at"))) for found in raised]
        judged = _with_verdict(_with_verdict(requested, raised[0], today, "today"), raised[1], other, "other").persist()
        try:
            return Comparison(
                alerts={rule: (counts[0].get(rule, 0), counts[1].get(rule, 0)) for rule in _rule_names(today, other)},
                groups=_groups(judged),
                different=judged.where("today != other").count(),
                differences=_differences(judged),
            )
        finally:
            judged.unpersist()
    finally:
        for found in raised:
            found.unpersist()


def _requested(payments: DataFrame, labels: Mapping[str, bool]) -> DataFrame:
    """One row per payment, with the truth about it: whether it was fraud.

    The labels decide; without one, the outcome of a review does, and without a review, whether it was paid and kept.
    """
    requested = payments.where(is_attempt()).select(
        request("payment_id").alias("payment_id"),
        request("order_id").alias("order_id"),
        customer().alias("customer"),
        token().alias("token"),
        request("amount.amount").alias("amount"),
        request("amount.currency").alias("currency"),
        sf.col("event_time").alias("requested_at"),
    )
    outcomes = payments.groupBy(id_of_stream().alias("payment_id")).agg(
        sf.bool_or(sf.col("payment_declined.declined_by") == "review").alias("rejected"),
        sf.bool_or(sf.col("payment_approved").isNotNull()).alias("approved"),
        sf.bool_or(sf.col("payment_captured").isNotNull()).alias("paid"),
        sf.bool_or(sf.col("payment_refunded").isNotNull()).alias("refunded"),
    )
    labelled = payments.sparkSession.createDataFrame(list(labels.items()), "order_id string, is_fraud boolean")
    kept = sf.col("paid") & ~sf.col("refunded")
    truth = (
        sf.when(sf.col("is_fraud"), FRAUD)
        .when(~sf.col("is_fraud"), HONEST)
        .when(sf.col("rejected"), FRAUD)
        .when(sf.col("approved") | kept, HONEST)
        .otherwise(UNKNOWN)
    )
    found = requested.join(outcomes, on="payment_id", how="left").join(labelled, on="order_id", how="left")
    return found.select(*requested.columns, truth.alias("truth"), kept.alias("was_kept"))


def _with_verdict(requested: DataFrame, raised: DataFrame, rules: Rules, name: str) -> DataFrame:
    """Adds the verdict by the worst alert that had reached the payment service by then, and its reasons."""
    arrived = sf.timestamp_millis(sf.unix_millis("reached_at") + rules.payment.seconds * 1000)
    expired = sf.timestamp_millis(sf.unix_millis("at") + rules.payment.hours * 3_600_000)
    in_force = raised.select(
        "subject_kind", "subject", "score", "reasons", arrived.alias("arrived"), expired.alias("expired")
    )
    subject = sf.explode(sf.array(_subject("customer"), _subject("token")))
    then = (sf.col("requested_at") >= sf.col("arrived")) & (sf.col("requested_at") < sf.col("expired"))
    worst = (
        requested.select("payment_id", "requested_at", subject.alias("about"))
        .select("payment_id", "requested_at", "about.*")
        .join(in_force, on=[*SUBJECT], how="inner")
        .where(then)
        .groupBy("payment_id")
        .agg(sf.max(sf.struct("score", "arrived", "reasons")).alias("worst"))
    )
    verdict = sf.when(sf.col("worst.score") >= rules.payment.refuse, REFUSED).when(
        sf.col("worst.score") >= rules.payment.hold, HELD
    )
    return requested.join(worst, on="payment_id", how="left").select(
        *requested.columns,
        sf.coalesce(verdict, sf.lit(ALLOWED)).alias(name),
        sf.col("worst.reasons").alias(f"{name}_reasons"),
    )


def _subject(kind: str) -> Column:
    return sf.struct(sf.lit(kind).alias("subject_kind"), sf.col(kind).alias("subject"))


def _by_rule(raised: DataFrame) -> dict[str, int]:
    return {row["rule"]: row["count"] for row in raised.groupBy("rule").count().collect()}


def _rule_names(*both: Rules) -> list[str]:
    return list(dict.fromkeys(rule.name for rules in both for rule in rules.rule))


def _groups(judged: DataFrame) -> list[Group]:
    alike = judged.groupBy("truth", "currency", "today", "other", "was_kept")
    rows = alike.agg(sf.count("*").alias("payments"), sf.sum("amount").alias("amount")).collect()
    return sorted((Group(**row.asDict()) for row in rows), key=astuple)


def _differences(judged: DataFrame) -> list[ChangedVerdict]:
    was_stricter = (sf.col("other") == ALLOWED) | (sf.col("today") == REFUSED)
    rows = judged.where("today != other").select(
        "payment_id",
        "order_id",
        sf.col("customer").alias("customer_id"),
        sf.unix_millis("requested_at").alias("at"),
        *("amount", "currency", "truth", "today", "other"),
        sf.when(was_stricter, sf.col("today_reasons")).otherwise(sf.col("other_reasons")).alias("reasons"),
    )
    largest = rows.orderBy(sf.desc("amount"), "payment_id").limit(MOST_DIFFERENCES)
    return [ChangedVerdict(**row.asDict()) for row in largest.collect()]
