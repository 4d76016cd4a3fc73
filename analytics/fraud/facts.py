"""What is counted: that a payment was asked for, declined by the provider, paid. Of a customer, and of a token.

An event is at most one fact, by what is in the event alone. So facts are the same in whatever order events come, and
more events are never fewer facts.
"""

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as sf

from analytics.fraud.rules import Rules

ATTEMPT, DECLINE, PURCHASE = "attempt", "decline", "purchase"
REQUESTS = ("authorization_requested", "payment_held_for_review", "payment_declined")
"""As which a payment begins; they say who pays how much with what."""
EVENTS = (*REQUESTS, "payment_captured")
"""Columns of silver.payment_events: all that facts come from."""
SUBJECT = ("subject_kind", "subject")
FACT = ("fact", "payment_id", "at", "other", "amount", "currency")
"""`at` in unix milliseconds; `other` is the token of a customer's fact, the customer of a token's."""


def facts(payments: DataFrame, rules: Rules) -> DataFrame:
    """Of rows as in silver.payment_events."""
    kinds = payments.withColumn("fact", _fact()).where("fact is not null")
    details = kinds.select(
        "fact",
        _field("payment_id").alias("payment_id"),
        sf.unix_millis("event_time").alias("at"),
        customer().alias("customer"),
        token().alias("token"),
        _field("amount.amount").alias("amount"),
        _field("amount.currency").alias("currency"),
    )
    subjects = details.withColumn("about", sf.explode(_subjects()))
    telling = subjects.where((sf.col("about.subject_kind") == "customer") | ~says_nothing(sf.col("token"), rules))
    return telling.select("about.subject_kind", "about.subject", *FACT[:3], "about.other", *FACT[4:])


def says_nothing(token: Column, rules: Rules) -> Column:
    """Of a purchase the event does not name it; and some are everybody's."""
    return token.isNull() | token.isin(*rules.tokens.shared)


def customer() -> Column:
    """Of a row of silver that is a fact, who pays."""
    return _field("customer_id")


def token() -> Column:
    """And by which means, where the event says it."""
    return request("payment_token")


def is_attempt() -> Column:
    """Once in a payment: approved after a review, it asks for an authorisation a second time."""
    return (sf.col("stream_version") == 1) & request("payment_id").isNotNull()


def request(field: str) -> Column:
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
