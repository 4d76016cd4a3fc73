"""Alerts of fraud in gold: the same rows that the stream of alerts sends to Kafka."""

from pyspark.sql import DataFrame

from analytics.fraud.alerts import alerts_from_facts
from analytics.incremental.definition import table
from analytics.models.scopes.fraud_subjects import SUBJECTS, WINDOW, affected_windows
from analytics.models.staging.payment_facts import RULES


@table(
    key=(*WINDOW, "alert_id"),
    unit=WINDOW,
    scope=SUBJECTS,
    affected=affected_windows,
    time="window_start",
    version=RULES.version,
)
def fraud_alerts(payment_facts: DataFrame) -> DataFrame:
    """One row per rule and level that a customer or payment token reached in a window, with the reason in words."""
    return alerts_from_facts(payment_facts, RULES)
