"""Alerts: levels of rules that were reached in a window. What an alert says follows from rule, level, subject, window.

How far the measure went, and when, is not part of it. So the stream, which sees the level being reached, and a batch,
which sees all events, write the same alert under the same id. Under other rules it has another id.
"""

from functools import cache
from uuid import NAMESPACE_URL, uuid5

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as sf

from analytics.fraud.facts import SUBJECT
from analytics.fraud.rules import Level, Rule, Rules
from analytics.fraud.windows import growth, reached

NAMESPACE = uuid5(NAMESPACE_URL, "tillroll:fraud.alerts")


def alerts_from_facts(facts: DataFrame, rules: Rules) -> DataFrame:
    """One row per alert. `value` and `reached_at` tell how far the measure went, and when it reached the level."""
    found = growth(facts, rules).withColumn("alert", _levels(rules)).where("alert IS NOT NULL")
    return found.select(*SUBJECT, "window_start", "window_end", "alert.*").select(*_shown())


def as_published(alerts: DataFrame) -> DataFrame:
    """Selects the fields of the event FraudAlert."""
    moments = (sf.unix_millis(name).alias(name) for name in ("window_start", "window_end", "at"))
    return alerts.select("alert_id", "customer_id", "payment_token", "score", "reasons", *moments)


@cache
def _levels(rules: Rules) -> Column:
    """Explodes into a row per level of each rule, null where it was not reached. Built once, as in `windows`."""
    return sf.explode(sf.array(*(_alert_at(rule, level, rules) for rule in rules.rule for level in rule.levels)))


@cache
def _shown() -> tuple[Column, ...]:
    window = {name: sf.timestamp_millis(name).alias(name) for name in ("window_start", "window_end")}
    content = sf.to_json(sf.struct("rule", "score", "reason", *SUBJECT, *window))
    return (
        _uuid5(content).alias("alert_id"),
        *map(sf.col, SUBJECT),
        *(_subject_if(kind).alias(name) for kind, name in (("customer", "customer_id"), ("token", "payment_token"))),
        *map(sf.col, ("rule", "at_least", "value", "score")),
        sf.array("reason").alias("reasons"),
        *window.values(),
        window["window_end"].alias("at"),  # the one moment that every computation agrees on
        sf.timestamp_millis("reached_at").alias("reached_at"),
    )


def _alert_at(rule: Rule, level: Level, rules: Rules) -> Column:
    """A struct that describes the alert; null where the level was not reached."""
    trace = sf.col(rule.measure)
    enough = sf.filter(trace, lambda it: it["value"] >= level.at_least)
    alert = sf.struct(
        sf.lit(rule.name).alias("rule"),
        sf.lit(level.at_least).cast("long").alias("at_least"),
        sf.lit(level.score).alias("score"),
        sf.lit(rule.reason_at(level, rules.windows)).alias("reason"),
        reached(trace).alias("value"),
        sf.array_min(sf.transform(enough, lambda it: it["at"])).alias("reached_at"),
    )
    return sf.when((sf.col("subject_kind") == rule.about) & (sf.size(enough) > 0), alert)


def _subject_if(kind: str) -> Column:
    return sf.when(sf.col("subject_kind") == kind, sf.col("subject")).otherwise("")


def _uuid5(name: Column) -> Column:
    """Does what `uuid.uuid5` does: a SHA-1, with the digits of version and variant set."""
    digest = sf.sha1(sf.concat(sf.lit(NAMESPACE.bytes), sf.encode(name, "UTF-8")))
    variant = sf.translate(sf.substring(digest, 17, 1), "0123456789abcdef", "89ab" * 4)
    text = (digest.substr(1, 8), digest.substr(9, 4), sf.concat(sf.lit("5"), digest.substr(14, 3)))
    return sf.concat_ws("-", *text, sf.concat(variant, digest.substr(18, 3)), digest.substr(21, 12))
