"""Events of an order, as plain records of their schema, lead to commands to its payment."""

from dataclasses import asdict
from typing import Any, get_args

import services.order.events
from services.payment.commands import CancelPayment, CapturePayment, RequestPayment
from services.payment.reactions import react
from services.payment.risk import Hold, Verdict
from services.payment.velocity import Attempt
from shared.messaging.incoming import Incoming
from tests.unit.services.order.words import ANN, CONFIRMED, LATER, ORDER, PAYMENT, REQUESTED, TOTAL, cancelled
from tests.unit.services.payment.words import ODD

STREAM = f"payment:{PAYMENT}"


def message(event_type: str, data: dict[str, Any]) -> Incoming:
    return Incoming(event_type, f"order:{ORDER}", 1, data)


def odd(_attempt: Attempt) -> Verdict:
    return Hold(ODD)


def test_the_risk_of_a_payment_is_assessed_before_it_is_requested() -> None:
    assessed: list[Attempt] = []

    def assess(attempt: Attempt) -> Verdict:
        assessed.append(attempt)
        return odd(attempt)

    reaction = react(message("PaymentRequested", asdict(REQUESTED)), LATER, assess)
    assert reaction == [(STREAM, RequestPayment(PAYMENT, ORDER, ANN, TOTAL, "tok_ok", Hold(ODD)))]
    assert assessed == [Attempt(PAYMENT, ANN, TOTAL, "tok_ok", LATER)]


def test_a_confirmed_order_is_captured() -> None:
    assert react(message("OrderConfirmed", asdict(CONFIRMED)), LATER, odd) == [(STREAM, CapturePayment())]


def test_a_cancelled_order_gets_its_money_back() -> None:
    reaction = react(message("OrderCancelled", asdict(cancelled("customer"))), LATER, odd)
    assert reaction == [(STREAM, CancelPayment(PAYMENT, ORDER))]


def test_an_order_cancelled_before_it_asked_for_money_has_no_payment() -> None:
    assert react(message("OrderCancelled", asdict(cancelled("out_of_stock", payment_id=""))), LATER, odd) == []


def test_other_events_lead_to_no_command() -> None:
    known = {event.__name__ for event in get_args(services.order.events.Event)}
    others = known - {"PaymentRequested", "OrderConfirmed", "OrderCancelled"}
    assert [react(message(name, {}), LATER, odd) for name in [*others, "FraudAlert"]] == [[]] * (len(others) + 1)
    assert others
