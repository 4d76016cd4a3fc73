"""Payments as silver has them, made from events."""

from collections.abc import Iterable
from datetime import datetime, timedelta
from typing import Any

from pyspark.sql import DataFrame, SparkSession

from analytics.catalog import column_of
from analytics.catalog.events import event_tables
from services.common.money import Money
from services.payment.events import (
    AuthorizationRequested,
    PaymentApproved,
    PaymentCaptured,
    PaymentDeclined,
    PaymentHeldForReview,
    PaymentRefunded,
)
from shared.schemas.records import to_record
from tests.roll import NOON, ShopEvent
from tests.unit.analytics.delta import spark_type

Happened = tuple[datetime, str, Any]


def silver_payments(spark: SparkSession, events: Iterable[ShopEvent]) -> DataFrame:
    """Makes silver.payment_events of these events, each event id once."""
    [columns] = [spark_type(t) for t in event_tables() if t.name == "silver.payment_events"]
    rows = {shop_event.event_id: _row(shop_event, columns.names) for shop_event in events}
    return spark.createDataFrame(list(rows.values()), columns)


def _row(shop_event: ShopEvent, columns: list[str]) -> tuple[Any, ...]:
    event_type = type(shop_event.event)
    known = {
        "event_id": shop_event.event_id,
        "event_type": event_type.__name__,
        "stream_id": shop_event.stream_id,
        "stream_version": shop_event.version,
        "event_time": shop_event.at,
        "topic": "payment.events",
        column_of(event_type.__name__): to_record(event_type)(shop_event.event),
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
