"""Features of fraud: what customers and payment tokens did in hopping windows."""

from pyspark.sql import DataFrame

from analytics.fraud.windows import features, growth
from analytics.incremental.definition import table
from analytics.models.scopes.fraud_subjects import SUBJECTS, WINDOW, affected_windows
from analytics.models.staging.payment_facts import RULES


@table(key=WINDOW, scope=SUBJECTS, affected=affected_windows, time="window_start", version=RULES.version)
def fraud_features(payment_facts: DataFrame) -> DataFrame:
    """One row per customer or payment token and hopping window: payments, declines, amounts against their history."""
    return features(growth(payment_facts, RULES))
