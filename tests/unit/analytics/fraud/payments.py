"""Payments as silver has them, from stories told in events."""

from collections.abc import Iterable
from datetime import datetime, timedelta
from typing import Any

from pyspark.sql import DataFrame, SparkSession

from analytics.tables import column_of, tables
from services.payment.events import (
    AuthorizationRequested,
    PaymentApproved,
    PaymentCaptured,
    PaymentDeclined,
    PaymentHeldForReview,
    PaymentRefunded,
)
from shared.codec import to_record
from shared.money import Money
from shared.schemas import load_schemas
from tests.roll import NOON, Told

Happened = tuple[datetime, str, Any]


def silver_payments(spark: SparkSession, events: Iterable[Told]) -> DataFrame:
    """silver.payment_events with these, each event id once."""
    [columns] = [t.columns for t in tables(spark, load_schemas()) if t.name == "silver.payment_events"]
    rows = {told.event_id: _row(told, columns.names) for told in events}
    return spark.createDataFrame(list(rows.values()), columns)


def _row(told: Told, columns: list[str]) -> tuple[Any, ...]:
    event_type = type(told.event)
    known = {
        "event_id": told.event_id,
        "event_type": event_type.__name__,
        "stream_id": told.stream_id,
        "stream_version": told.version,
        "event_time": told.at,
        "topic": "payment.events",
        column_of(event_type.__name__): to_record(event_type)(told.event),
    }
    return tuple(known.get(column) for column in columns)


def after(seconds: float) -> datetime:
    return NOON + timedelta(seconds=seconds)


class Payment:
    """One payment, step by step."""

    def __init__(self, payment_id: str, customer: str, cents: int = 1000, token: str = "tok_ok", currency: str = "EUR"):
        self.stream = f"payment:{payment_id}"
        self.charge = (payment_id, f"order-{payment_id}", customer, Money(cents, currency), token)

    def asked(self, at: float) -> Happened:
        return after(at), self.stream, AuthorizationRequested(*self.charge)

    def held(self, at: float) -> Happened:
        return after(at), self.stream, PaymentHeldForReview(*self.charge, ("odd",))

    def approved(self, at: float) -> Happened:
        return after(at), self.stream, PaymentApproved(*self.charge[:2])

    def declined(self, at: float, by: str = "provider") -> Happened:
        return after(at), self.stream, PaymentDeclined(*self.charge, by, ("no",))

    def paid(self, at: float) -> Happened:
        return after(at), self.stream, PaymentCaptured(*self.charge[:4], "psp_1")

    def refunded(self, at: float) -> Happened:
        return after(at), self.stream, PaymentRefunded(*self.charge[:4], "psp_1")


def bought(payment_id: str, customer: str, at: float, cents: int = 1000) -> list[Happened]:
    payment = Payment(payment_id, customer, cents)
    return [payment.asked(at), payment.paid(at + 1)]


def failed(payment_id: str, customer: str, at: float, token: str = "tok_declined") -> list[Happened]:
    payment = Payment(payment_id, customer, token=token)
    return [payment.asked(at), payment.declined(at + 1)]
