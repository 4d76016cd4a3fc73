"""Facts about payments under today's rules of fraud, for gold. `analytics/fraud/facts.py` says what a fact is."""

from pyspark.sql import DataFrame

from analytics.fraud.facts import facts
from analytics.fraud.rules import load_rules

RULES = load_rules()
"""Gold is made with the rules that are installed. Other rules are another version of the logic: the tables wait for a
replay.
"""


def payment_facts(payment_events: DataFrame) -> DataFrame:
    """One row per fact and subject, which is a customer or a payment token."""
    return facts(payment_events, RULES)
