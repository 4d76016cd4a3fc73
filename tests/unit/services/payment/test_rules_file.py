"""The `[payment]` section of the lake's fraud rules says what the payment service does with an alert."""

from analytics.fraud.rules import TODAY, load_rules
from services.payment.risk import Rules

HOUR_MS = 3_600_000


def test_the_lakes_fraud_rules_answer_an_alert_as_the_payment_service_does() -> None:
    """`till whatif fraud` predicts holds and refusals by these figures; the payment service decides by its own."""
    lake, payment = load_rules(TODAY).payment, Rules()
    assert (lake.hold, lake.refuse) == (payment.alert_score.hold, payment.alert_score.refuse)
    assert lake.hours * HOUR_MS == payment.alert_ms


def test_the_lake_and_the_payment_service_leave_out_the_same_shared_test_cards() -> None:
    assert frozenset(load_rules(TODAY).tokens.shared) == Rules().shared_tokens
