"""The verdict on a payment: each limit, and its reason in words."""

from dataclasses import replace
from typing import Any

import pytest

from services.common.money import Money
from services.payment.risk import Allow, Features, Hold, Limit, Refuse, Rules, assess

RULES = Rules()
ORDINARY = Features(
    amount=Money(4990, "EUR"),
    attempts=1,
    declines=0,
    tokens=1,
    customers=1,
    times_usual=1,
    is_newcomer=False,
    alert_score=0,
    alert_reasons=(),
)

ODD: list[tuple[dict[str, Any], str]] = [
    ({"attempts": 20}, "20 payments of this customer within 10 minutes"),
    ({"declines": 5}, "5 declined payments of this customer within 10 minutes"),
    ({"tokens": 4}, "4 means of payment used by this customer within 10 minutes"),
    ({"customers": 4}, "4 customers with this means of payment within 10 minutes"),
    ({"times_usual": 10}, "49.90 EUR is 10 times what this customer usually spends"),
    (
        {"is_newcomer": True, "times_usual": 0, "amount": Money(500_000, "EUR")},
        "5000.00 EUR from a customer who has bought little so far",
    ),
    ({"alert_score": 50, "alert_reasons": ("a burst", "of cards")}, "alert of score 50: a burst; of cards"),
]


def test_an_ordinary_payment_is_allowed() -> None:
    assert assess(ORDINARY, RULES) == Allow()


@pytest.mark.parametrize(("sign", "reason"), ODD, ids=[reason for _, reason in ODD])
def test_one_reached_limit_is_enough_to_hold_a_payment(sign: dict[str, Any], reason: str) -> None:
    assert assess(replace(ORDINARY, **sign), RULES) == Hold((reason,))


@pytest.mark.parametrize(
    "sign",
    [
        {"attempts": 19},
        {"declines": 4},
        {"tokens": 3},
        {"customers": 3},
        {"times_usual": 9},
        {"is_newcomer": True, "amount": Money(499_999, "EUR")},
        {"amount": Money(500_000, "EUR")},
        {"alert_score": 49},
    ],
)
def test_a_payment_below_every_limit_is_allowed(sign: dict[str, Any]) -> None:
    assert assess(replace(ORDINARY, **sign), RULES) == Allow()


@pytest.mark.parametrize(
    "sign", [{"attempts": 50}, {"declines": 10}, {"tokens": 8}, {"customers": 10}, {"alert_score": 90}]
)
def test_a_payment_beyond_the_second_limit_is_refused(sign: dict[str, Any]) -> None:
    assert isinstance(assess(replace(ORDINARY, **sign), RULES), Refuse)


def test_a_verdict_names_all_its_reasons_and_no_others() -> None:
    held = assess(replace(ORDINARY, declines=5, tokens=4), RULES)
    refused = assess(replace(ORDINARY, declines=10, tokens=4), RULES)
    assert isinstance(held, Hold)
    assert len(held.reasons) == 2
    assert refused == Refuse(("10 declined payments of this customer within 10 minutes",))


def test_other_rules_lead_to_other_verdicts() -> None:
    strict = replace(RULES, attempts=Limit(1, 2), window_ms=60 * 60_000)
    assert assess(ORDINARY, strict) == Hold(("1 payments of this customer within 60 minutes",))
    assert isinstance(assess(replace(ORDINARY, attempts=2), strict), Refuse)
