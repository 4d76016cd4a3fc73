"""What is remembered of payments to judge the next one by: in memory, bounded, fed from `payment.events`
and `fraud.alerts`. Seeing an event twice makes no difference.
"""

from collections import OrderedDict
from collections.abc import Mapping
from dataclasses import dataclass, field
from statistics import median_low
from typing import Any, NamedTuple, TypeVar

from services.payment.events import (
    AuthorizationRequested,
    Event,
    PaymentCaptured,
    PaymentDeclined,
    PaymentHeldForReview,
)
from services.payment.risk import Features, Rules, Verdict, assess
from shared.money import Money

REMEMBERED = 100
"""Payments of one customer, customers of one token: enough for any limit worth setting."""
KNOWN = 200_000
"""Customers, and tokens. Who was not heard of for longest is forgotten first."""
PURCHASES_TO_KNOW = 3

Key = TypeVar("Key")
Value = TypeVar("Value")


class Attempt(NamedTuple):
    """A payment that is to be judged."""

    payment_id: str
    customer_id: str
    amount: Money
    payment_token: str
    at: int
    """Unix milliseconds."""


class Used(NamedTuple):
    at: int
    token: str


class Alert(NamedTuple):
    at: int
    score: int
    reasons: tuple[str, ...]


@dataclass(slots=True)
class Customer:
    """Each by payment id."""

    attempts: dict[str, Used] = field(default_factory=dict)
    declines: dict[str, int] = field(default_factory=dict)
    purchases: dict[str, Money] = field(default_factory=dict)


@dataclass(slots=True)
class Velocity:
    customers: OrderedDict[str, Customer] = field(default_factory=OrderedDict)
    tokens: OrderedDict[str, dict[str, int]] = field(default_factory=OrderedDict)
    """When which customer last used it."""
    alerts: OrderedDict[str, tuple[Alert, ...]] = field(default_factory=OrderedDict)
    """By customer id or token, those that none outdoes. A milder one that is newer counts when the worse is over."""


def observe(velocity: Velocity, event: Event, at: int) -> None:
    """Take note of a payment event that was recorded at that moment (unix ms)."""
    match event:
        case AuthorizationRequested() | PaymentHeldForReview() | PaymentDeclined():
            customer = _customer(velocity, event.customer_id)
            if event.payment_id not in customer.attempts:
                _note(customer.attempts, event.payment_id, Used(at, event.payment_token))
                users = _known(velocity.tokens, event.payment_token, {})
                _note(users, event.customer_id, max(at, users.get(event.customer_id, at)))
            if isinstance(event, PaymentDeclined) and event.declined_by == "provider":
                _note(customer.declines, event.payment_id, at)
        case PaymentCaptured():
            _note(_customer(velocity, event.customer_id).purchases, event.payment_id, event.amount)


def heed(velocity: Velocity, alert: Mapping[str, Any]) -> None:
    """Take note of a FraudAlert, about a customer, a token, or both."""
    heard = Alert(alert["at"], alert["score"], tuple(alert["reasons"]))
    for about in (alert["customer_id"], alert["payment_token"]):
        if about:
            known = _known(velocity.alerts, about, ())
            if not any(_outdoes(it, heard) for it in known):
                velocity.alerts[about] = (*(it for it in known if not _outdoes(heard, it)), heard)


def features(velocity: Velocity, attempt: Attempt, rules: Rules) -> Features:
    """Of this payment, which counts as one more whether or not it was observed already."""
    customer = velocity.customers.get(attempt.customer_id, Customer())
    since = attempt.at - rules.window_ms
    used = customer.attempts | {attempt.payment_id: Used(attempt.at, attempt.payment_token)}
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


def judge(velocity: Velocity, attempt: Attempt, rules: Rules) -> Verdict:
    return assess(features(velocity, attempt, rules), rules)


def _usual(customer: Customer, currency: str) -> int:
    """What the customer spends; 0 before there are enough purchases to tell."""
    spent = [money.amount for money in customer.purchases.values() if money.currency == currency]
    return median_low(spent) if len(spent) >= PURCHASES_TO_KNOW else 0


def _worst_alert(velocity: Velocity, attempt: Attempt, rules: Rules) -> Alert:
    about = [attempt.customer_id, *([] if attempt.payment_token in rules.shared_tokens else [attempt.payment_token])]
    heard = (alert for it in about for alert in velocity.alerts.get(it, ()))
    current = (alert for alert in heard if alert.at > attempt.at - rules.alert_ms)
    return max(current, key=lambda alert: alert.score, default=Alert(0, 0, ()))


def _outdoes(one: Alert, other: Alert) -> bool:
    """As bad and as new, at least; itself, too."""
    return one.at >= other.at and one[1:] >= other[1:]


def _customer(velocity: Velocity, customer_id: str) -> Customer:
    return _known(velocity.customers, customer_id, Customer())


def _known(known: OrderedDict[str, Value], key: str, new: Value) -> Value:
    found = known.setdefault(key, new)
    known.move_to_end(key)
    if len(known) > KNOWN:
        known.popitem(last=False)
    return found


def _note(notes: dict[Key, Value], key: Key, value: Value) -> None:
    notes[key] = value
    if len(notes) > REMEMBERED:
        del notes[next(iter(notes))]
