"""The history that the velocity checks of a payment need, and the features computed from it.

It is held in memory, bounded, and fed from `payment.events` and `fraud.alerts` (see `feed.py`). Recording an event
twice makes no difference.
"""

from collections import OrderedDict
from collections.abc import Mapping
from dataclasses import dataclass, field
from statistics import median_low
from typing import Any, NamedTuple, TypeVar

from services.common.money import Money
from services.payment.events import (
    AuthorizationRequested,
    Event,
    PaymentCaptured,
    PaymentDeclined,
    PaymentHeldForReview,
)
from services.payment.risk import Features, Rules, Verdict, assess

MAX_PER_KEY = 100
"""Entries remembered per customer (payments) and per token (customers), more than any sensible limit needs."""
MAX_KEYS = 200_000
"""Customers, tokens and subjects of alerts remembered. The one not seen for longest is forgotten first."""
PURCHASES_FOR_USUAL = 3
"""Purchases after which a customer is no newcomer and has a usual amount."""

Key = TypeVar("Key")
Value = TypeVar("Value")


class Attempt(NamedTuple):
    """A payment whose risk is to be assessed."""

    payment_id: str
    customer_id: str
    amount: Money
    payment_token: str
    at: int
    """Unix milliseconds."""


class TokenUse(NamedTuple):
    at: int
    token: str


class Alert(NamedTuple):
    at: int
    score: int
    reasons: tuple[str, ...]


@dataclass(slots=True)
class Customer:
    """Recent payments of one customer, by payment id."""

    attempts: dict[str, TokenUse] = field(default_factory=dict)
    declines: dict[str, int] = field(default_factory=dict)
    purchases: dict[str, Money] = field(default_factory=dict)


@dataclass(slots=True)
class Velocity:
    """The payment history: what customers, tokens and alerts have shown so far."""

    customers: OrderedDict[str, Customer] = field(default_factory=OrderedDict)
    tokens: OrderedDict[str, dict[str, int]] = field(default_factory=OrderedDict)
    """The time at which each customer last used a token (unix milliseconds), by token."""
    alerts: OrderedDict[str, tuple[Alert, ...]] = field(default_factory=OrderedDict)
    """Alerts by customer id or token, without those that another one dominates: at least as new and as severe."""


def record_event(velocity: Velocity, event: Event, at: int) -> None:
    """Adds a payment event that was recorded at this time (unix milliseconds)."""
    match event:
        case AuthorizationRequested() | PaymentHeldForReview() | PaymentDeclined():
            customer = _customer(velocity, event.customer_id)
            if event.payment_id not in customer.attempts:
                _remember(customer.attempts, event.payment_id, TokenUse(at, event.payment_token))
                users = _entry(velocity.tokens, event.payment_token, {})
                _remember(users, event.customer_id, max(at, users.get(event.customer_id, at)))
            if isinstance(event, PaymentDeclined) and event.declined_by == "provider":
                _remember(customer.declines, event.payment_id, at)
        case PaymentCaptured():
            _remember(_customer(velocity, event.customer_id).purchases, event.payment_id, event.amount)


def record_alert(velocity: Velocity, document: Mapping[str, Any]) -> None:
    """Adds a FraudAlert about a customer, a token, or both."""
    alert = Alert(document["at"], document["score"], tuple(document["reasons"]))
    for subject in (document["customer_id"], document["payment_token"]):
        if subject:
            others = _entry(velocity.alerts, subject, ())
            if not any(_dominates(other, alert) for other in others):
                velocity.alerts[subject] = (*(other for other in others if not _dominates(alert, other)), alert)


def features(velocity: Velocity, attempt: Attempt, rules: Rules) -> Features:
    """Computes the features of this payment, which counts once whether or not its events were recorded already."""
    customer = velocity.customers.get(attempt.customer_id, Customer())
    since = attempt.at - rules.window_ms
    used = customer.attempts | {attempt.payment_id: TokenUse(attempt.at, attempt.payment_token)}
    recent = [use for use in used.values() if use.at > since]
    users = velocity.tokens.get(attempt.payment_token, {}) | {attempt.customer_id: attempt.at}
    is_shared = attempt.payment_token in rules.shared_tokens
    usual = _usual(customer, attempt.amount.currency)
    alert = _worst_alert(velocity, attempt, rules)
    return Features(
        amount=attempt.amount,
        attempts=len(recent),
        declines=sum(at > since for at in customer.declines.values()),
        tokens=len({use.token for use in recent} - rules.shared_tokens),
        customers=0 if is_shared else sum(at > since for at in users.values()),
        times_usual=attempt.amount.amount // usual if usual else 0,
        is_newcomer=not usual,
        alert_score=alert.score,
        alert_reasons=alert.reasons,
    )


def assess_attempt(velocity: Velocity, attempt: Attempt, rules: Rules) -> Verdict:
    """Gives the verdict of the risk check on a payment."""
    return assess(features(velocity, attempt, rules), rules)


def _usual(customer: Customer, currency: str) -> int:
    """Returns the median of the customer's purchases, or 0 while there are too few to tell."""
    spent = [money.amount for money in customer.purchases.values() if money.currency == currency]
    return median_low(spent) if len(spent) >= PURCHASES_FOR_USUAL else 0


def _worst_alert(velocity: Velocity, attempt: Attempt, rules: Rules) -> Alert:
    is_shared = attempt.payment_token in rules.shared_tokens
    subjects = [attempt.customer_id, *([] if is_shared else [attempt.payment_token])]
    alerts = (alert for subject in subjects for alert in velocity.alerts.get(subject, ()))
    current = (alert for alert in alerts if alert.at > attempt.at - rules.alert_ms)
    return max(current, key=lambda alert: alert.score, default=Alert(0, 0, ()))


def _dominates(one: Alert, other: Alert) -> bool:
    """Tells whether the first alert is at least as new and as severe as the other. An alert dominates itself."""
    return one.at >= other.at and one[1:] >= other[1:]


def _customer(velocity: Velocity, customer_id: str) -> Customer:
    return _entry(velocity.customers, customer_id, Customer())


def _entry(entries: OrderedDict[str, Value], key: str, new: Value) -> Value:
    found = entries.setdefault(key, new)
    entries.move_to_end(key)
    if len(entries) > MAX_KEYS:
        entries.popitem(last=False)
    return found


def _remember(entries: dict[Key, Value], key: Key, value: Value) -> None:
    entries[key] = value
    if len(entries) > MAX_PER_KEY:
        del entries[next(iter(entries))]
