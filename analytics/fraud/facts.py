"""Facts about payments: that one was attempted, declined by the provider, or paid; for a customer and for a token.

An event is at most one fact, and which one depends on that event alone. So facts are the same in whatever order events
arrive, and more events never mean fewer facts.
"""

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as sf

from analytics.fraud.rules import Rules

ATTEMPT, DECLINE, PURCHASE = "attempt", "decline", "purchase"
REQUESTS = ("authorization_requested", "payment_held_for_review", "payment_declined")
"""Events with which a payment can begin. They say who pays how much with which token."""
EVENTS = (*REQUESTS, "payment_captured")
"""Columns of silver.payment_events that facts come from."""
SUBJECT = ("subject_kind", "subject")
FACT = ("fact", "payment_id", "at", "other", "amount", "currency")
"""`at` is in unix milliseconds; `other` is the token of a customer's fact and the customer of a token's fact."""


def facts(payments: DataFrame, rules: Rules) -> DataFrame:
    """Finds the facts in rows of silver.payment_events: one row per fact and subject."""
    kinds = payments.withColumn("fact", _fact()).where("fact IS NOT NULL")
    details = kinds.select(
        "event_id",
        "fact",
        _field("payment_id").alias("payment_id"),
        sf.unix_millis("event_time").alias("at"),
        customer().alias("customer"),
        token().alias("token"),
        _field("amount.amount").alias("amount"),
        _field("amount.currency").alias("currency"),
    )
    subjects = details.withColumn("about", sf.explode(_subjects()))
    is_customer = sf.col("about.subject_kind") == "customer"
    identified = subjects.where(is_customer | ~identifies_nobody(sf.col("token"), rules))
    return identified.select("event_id", "about.subject_kind", "about.subject", *FACT[:3], "about.other", *FACT[4:])


def identifies_nobody(token: Column, rules: Rules) -> Column:
    """True where the event names no token, as a purchase does, or names a test card that everybody uses."""
    return token.isNull() | token.isin(*rules.tokens.shared)


def customer() -> Column:
    """Customer of an event that is a fact."""
    return _field("customer_id")


def token() -> Column:
    """Payment token of an event that is a fact; null where the event does not name it."""
    return request("payment_token")


def is_attempt() -> Column:
    """True once per payment: one that is approved after a review asks for an authorisation a second time."""
    return (sf.col("stream_version") == 1) & request("payment_id").isNotNull()


def request(field: str) -> Column:
    """A field of the event with which a payment began."""
    return sf.coalesce(*(sf.col(f"{event}.{field}") for event in REQUESTS))


def _fact() -> Column:
    return (
        sf.when(is_attempt(), ATTEMPT)
        .when(sf.col("payment_declined.declined_by") == "provider", DECLINE)
        .when(sf.col("payment_captured.payment_id").isNotNull(), PURCHASE)
    )


def _field(name: str) -> Column:
    return sf.coalesce(*(sf.col(f"{event}.{name}") for event in EVENTS))


def _subjects() -> Column:
    def about(kind: str, subject: str, other: str) -> Column:
        named = {"subject": subject, "other": other}
        return sf.struct(sf.lit(kind).alias("subject_kind"), *(sf.col(it).alias(name) for name, it in named.items()))

    return sf.array(about("customer", "customer", "token"), about("token", "token", "customer"))
