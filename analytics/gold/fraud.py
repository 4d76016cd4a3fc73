"""Fraud in gold: features of customers and of tokens over hopping windows, and the alerts that follow from them.

A unit is a window of a customer or of a token. A purchase changes later windows too: what somebody usually spends is
counted from all that went before.
"""

from collections.abc import Callable, Mapping

from pyspark.sql import DataFrame
from pyspark.sql import functions as sf

from analytics.fraud.alerts import alerts
from analytics.fraud.facts import SUBJECT, customer, facts, token
from analytics.fraud.rules import Rules, load_rules
from analytics.fraud.windows import features, growth, starts
from analytics.gold.definition import Filters, Gold, Scope, Silver
from analytics.gold.pruning import spans, within

PAYMENTS = "payment_events"
INDEX = "fraud_features"
WINDOW = (*SUBJECT, "window_start")


def fraud_tables(rules: Rules) -> tuple[Gold, Gold]:
    """Under these rules. Other rules are another logic: the tables are replayed."""

    def features_of(silver: Silver) -> DataFrame:
        return features(growth(facts(silver[PAYMENTS], rules), rules))

    def alerts_of(silver: Silver) -> DataFrame:
        return alerts(growth(facts(silver[PAYMENTS], rules), rules), rules)

    def touched(new: Silver, rows: Silver) -> DataFrame:
        """Of those with new facts, every window that ends after the first of these."""
        since = facts(new[PAYMENTS], rules).groupBy(*SUBJECT).agg(sf.min("at").alias("since"))
        windows = facts(rows[PAYMENTS], rules).withColumn("start", starts(rules)).join(sf.broadcast(since), [*SUBJECT])
        later = windows.where(sf.col("start") + rules.windows.length_ms > sf.col("since"))
        return later.select(*SUBJECT, sf.timestamp_millis("start").alias("window_start")).distinct()

    def concerned(new: Silver, _rows: Silver) -> Mapping[str, DataFrame]:
        return {"subjects": facts(new[PAYMENTS], rules).select(*SUBJECT).distinct()}

    def filters(new: Silver, known: Mapping[str, DataFrame]) -> Filters:
        subjects = sf.broadcast(concerned(new, {})["subjects"])
        minutes = known[INDEX].join(subjects, [*SUBJECT], "left_semi").select(sf.explode("minutes"))
        return {PAYMENTS: within("event_time", spans(minutes))}

    scope = Scope(concerned=concerned, narrowed=_about, known=(INDEX,), filters=filters)

    def table(name: str, about: str, key: tuple[str, ...], compute: Callable[[Silver], DataFrame]) -> Gold:
        return Gold(
            name=name,
            about=about,
            reads=(PAYMENTS,),
            key=key,
            unit=WINDOW,
            compute=compute,
            touched=touched,
            narrowed=lambda rows, _windows: rows,
            scope=scope,
            time="window_start",
            version=rules.version,
        )

    return (
        table(
            INDEX,
            "What customers and tokens did in hopping windows: payments, declines, amounts against their own history.",
            WINDOW,
            features_of,
        ),
        table(
            "fraud_alerts",
            "Who was suspicious, how much so, and why, in words.",
            (*WINDOW, "alert_id"),
            alerts_of,
        ),
    )


def _about(silver: Silver, ids: Mapping[str, DataFrame]) -> Silver:
    """Rows about those customers, and about those tokens."""
    rows = silver[PAYMENTS]
    kinds = {"customer": customer(), "token": token()}
    for kind, subject in kinds.items():
        wanted = ids["subjects"].where(sf.col("subject_kind") == kind).select(sf.col("subject").alias(kind))
        rows = rows.join(sf.broadcast(wanted), subject == sf.col(kind), "left")
    found = rows.where(sf.coalesce(*kinds).isNotNull())
    return {**silver, PAYMENTS: found.drop(*kinds)}


FRAUD: tuple[Gold, ...] = fraud_tables(load_rules())
