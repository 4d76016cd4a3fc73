"""The payment history of the risk check: what counts, for how long, and how much is remembered."""

from time import perf_counter
from typing import Any

import pytest

from services.common.money import Money
from services.payment.events import AuthorizationRequested, Event, PaymentCaptured, PaymentDeclined
from services.payment.risk import Allow, Features, Hold, Rules
from services.payment.velocity import (
    MAX_PER_KEY,
    Attempt,
    Velocity,
    assess_attempt,
    features,
    record_alert,
    record_event,
)
from tests.unit.services.payment.words import ANN, HELD

RULES = Rules()
NOON = 1_767_268_800_000
MINUTE = 60_000
CARD = "tok_ok_of_ann"


def euro(cents: int) -> Money:
    return Money(cents, "EUR")


def tried(number: int, customer: str = ANN, token: str = CARD) -> AuthorizationRequested:
    return AuthorizationRequested(f"p{number}", f"o{number}", customer, euro(1000), token)


def declined(number: int, by: str = "provider", token: str = CARD) -> PaymentDeclined:
    return PaymentDeclined(f"p{number}", f"o{number}", ANN, euro(1000), token, by, ("no",))


def bought(number: int, amount: Money) -> PaymentCaptured:
    return PaymentCaptured(f"p{number}", f"o{number}", ANN, amount, "ref")


def remembering(*events: Event, at: int = NOON) -> Velocity:
    velocity = Velocity()
    for event in events:
        record_event(velocity, event, at)
    return velocity


def of_next(velocity: Velocity, at: int = NOON, amount: Money | None = None, token: str = CARD) -> Features:
    return features(velocity, Attempt("next", ANN, amount or euro(1000), token, at), RULES)


def alert(customer: str = "", token: str = "", score: int = 80, at: int = NOON) -> dict[str, Any]:
    return {"customer_id": customer, "payment_token": token, "score": score, "reasons": ["odd"], "at": at}


def test_a_first_payment_counts_as_one() -> None:
    assert of_next(Velocity()) == Features(
        amount=euro(1000),
        attempts=1,
        declines=0,
        tokens=1,
        customers=1,
        times_usual=0,
        is_newcomer=True,
        alert_score=0,
        alert_reasons=(),
    )


def test_payments_of_the_customer_are_counted_held_and_declined_ones_too() -> None:
    assert of_next(remembering(tried(1), tried(2), HELD, declined(3, by="risk"))).attempts == 5


def test_a_payment_counts_once_however_often_its_events_arrive() -> None:
    twice = remembering(tried(1), tried(1), declined(1), declined(1), bought(2, euro(5)), bought(2, euro(5)))
    assert of_next(twice) == of_next(remembering(tried(1), declined(1), bought(2, euro(5))))
    assert of_next(twice).attempts == 2


def test_the_assessed_payment_is_not_counted_twice() -> None:
    velocity = remembering(tried(1))
    assert features(velocity, Attempt("p1", ANN, euro(1000), CARD, NOON), RULES).attempts == 1


def test_only_a_refusal_by_the_provider_counts_as_a_decline() -> None:
    assert of_next(remembering(declined(1), declined(2, by="risk"), declined(3, by="review"))).declines == 1


def test_payments_before_the_window_do_not_count() -> None:
    velocity = remembering(tried(1), declined(2), tried(3, customer="bob"))
    inside, outside = of_next(velocity, at=NOON + 10 * MINUTE - 1), of_next(velocity, at=NOON + 10 * MINUTE)
    assert (inside.attempts, inside.declines, inside.customers) == (3, 1, 2)
    assert (outside.attempts, outside.declines, outside.customers) == (1, 0, 1)


def test_many_cards_of_one_customer_are_noticed() -> None:
    assert of_next(remembering(tried(1, token="tok_ok_a"), tried(2, token="tok_ok_b"))).tokens == 3


def test_many_customers_with_one_card_are_noticed() -> None:
    assert (
        of_next(remembering(tried(1, customer="bob"), tried(2, customer="cid"), tried(3, customer="bob"))).customers
        == 3
    )


def test_shared_test_cards_are_left_out_of_the_counts() -> None:
    velocity = remembering(*(tried(n, customer=f"c{n}", token="tok_ok") for n in range(30)))
    shared = of_next(velocity, token="tok_ok")
    assert (shared.customers, shared.tokens) == (0, 0)
    record_alert(velocity, alert(token="tok_ok"))
    assert of_next(velocity, token="tok_ok").alert_score == 0


def test_an_amount_is_compared_with_what_the_customer_usually_spends() -> None:
    three = [bought(1, euro(1000)), bought(2, euro(2000)), bought(3, euro(90_000))]
    usual = of_next(remembering(*three), amount=euro(25_000))
    assert (usual.times_usual, usual.is_newcomer) == (12, False)


def test_a_customer_is_a_newcomer_until_the_third_purchase_in_that_currency() -> None:
    velocity = remembering(bought(1, euro(1000)), bought(2, euro(2000)), bought(3, Money(300, "JPY")))
    assert of_next(velocity).is_newcomer
    record_event(velocity, bought(4, euro(1000)), NOON)
    assert not of_next(velocity).is_newcomer


def test_an_alert_counts_for_its_customer_and_its_card_for_a_day() -> None:
    for about in (alert(customer=ANN), alert(token=CARD)):
        velocity = Velocity()
        record_alert(velocity, about)
        assert of_next(velocity, at=NOON + RULES.alert_ms - 1).alert_score == 80
        assert of_next(velocity, at=NOON + RULES.alert_ms).alert_score == 0
        assert assess_attempt(velocity, Attempt("p1", "bob", euro(1000), "tok_ok_b", NOON), RULES) == Allow()


@pytest.mark.parametrize("order", [(0, 1, 2), (2, 1, 0), (1, 0, 2), (2, 0, 2)])
def test_a_milder_alert_counts_once_the_worse_is_over_in_whatever_order_they_come(order: tuple[int, ...]) -> None:
    alerts = [
        alert(customer=ANN, score=95),
        alert(customer=ANN, score=60),  # dominated by the first
        alert(customer=ANN, score=60, at=NOON + MINUTE),
    ]
    velocity = Velocity()
    for number in order:
        record_alert(velocity, alerts[number])
    assert of_next(velocity, at=NOON + MINUTE).alert_score == 95
    assert of_next(velocity, at=NOON + RULES.alert_ms).alert_score == 60
    assert of_next(velocity, at=NOON + MINUTE + RULES.alert_ms).alert_score == 0
    assert len(velocity.alerts[ANN]) == 2


def test_the_worst_of_two_alerts_counts() -> None:
    velocity = Velocity()
    record_alert(velocity, alert(customer=ANN, score=55))
    record_alert(velocity, alert(token=CARD, score=70))
    assert of_next(velocity).alert_score == 70


def test_a_burst_of_card_testing_is_held() -> None:
    velocity = remembering(*(declined(n, token=f"tok_declined_{n}") for n in range(4)))
    verdict = assess_attempt(velocity, Attempt("p9", ANN, euro(100), "tok_ok_x", NOON), RULES)
    assert verdict == Hold(("5 means of payment used by this customer within 10 minutes",))


def test_only_the_latest_payments_of_a_customer_or_card_are_remembered() -> None:
    velocity = remembering(*(tried(n) for n in range(3 * MAX_PER_KEY)))
    for number in range(3 * MAX_PER_KEY):
        record_event(velocity, tried(1000 + number, customer=f"c{number}"), NOON)
    assert list(velocity.customers[ANN].attempts)[-1] == f"p{3 * MAX_PER_KEY - 1}"
    assert len(velocity.customers[ANN].attempts) == len(velocity.tokens[CARD]) == MAX_PER_KEY


def test_the_customer_not_seen_for_longest_is_forgotten_first(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("services.payment.velocity.MAX_KEYS", 3)
    velocity = Velocity()
    for number, customer in enumerate(["ann", "bob", "ann", "cid", "dan"]):
        record_event(velocity, tried(number, customer=customer, token=f"tok_ok_{customer}"), NOON)
        record_alert(velocity, alert(customer=customer))
    assert list(velocity.customers) == ["ann", "cid", "dan"]
    assert list(velocity.tokens) == ["tok_ok_ann", "tok_ok_cid", "tok_ok_dan"]
    assert list(velocity.alerts) == ["ann", "cid", "dan"]


def test_a_verdict_takes_much_less_than_a_millisecond() -> None:
    """The customer is the worst possible one: every memory is full."""
    velocity = remembering(*(tried(n, token=f"tok_ok_{n}") for n in range(MAX_PER_KEY)))
    for n in range(MAX_PER_KEY):
        record_event(velocity, declined(n), NOON)
        record_event(velocity, bought(n, euro(n)), NOON)
        record_event(velocity, tried(1000 + n, customer=f"c{n}"), NOON)
    attempt = Attempt("next", ANN, euro(1000), CARD, NOON)
    took = []
    for _ in range(200):
        start = perf_counter()
        assess_attempt(velocity, attempt, RULES)
        took.append(perf_counter() - start)
    assert sorted(took)[len(took) // 2] < 0.001
