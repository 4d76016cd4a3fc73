"""What a payment makes of the events of its order, read as they come."""

from dataclasses import asdict
from typing import get_args

import services.order.events
from services.payment.commands import CancelPayment, CapturePayment, RequestPayment
from services.payment.reactions import react
from services.payment.risk import Hold, Verdict
from services.payment.velocity import Attempt
from tests.unit.order.shop import ANN, CONFIRMED, LATER, ORDER, PAYMENT, REQUESTED, TOTAL, cancelled
from tests.unit.payment.till import ODD

STREAM = f"payment:{PAYMENT}"


def odd(_attempt: Attempt) -> Verdict:
    return Hold(ODD)


def test_a_request_is_judged_on_the_way() -> None:
    judged: list[Attempt] = []

    def judge(attempt: Attempt) -> Verdict:
        judged.append(attempt)
        return odd(attempt)

    reaction = react("PaymentRequested", asdict(REQUESTED), f"order:{ORDER}", LATER, judge)
    assert reaction == [(STREAM, RequestPayment(PAYMENT, ORDER, ANN, TOTAL, "tok_ok", Hold(ODD)))]
    assert judged == [Attempt(PAYMENT, ANN, TOTAL, "tok_ok", LATER)]


def test_a_confirmed_order_is_captured() -> None:
    assert react("OrderConfirmed", asdict(CONFIRMED), "", LATER, odd) == [(STREAM, CapturePayment())]


def test_a_cancelled_order_gets_its_money_back() -> None:
    reaction = react("OrderCancelled", asdict(cancelled("customer")), "", LATER, odd)
    assert reaction == [(STREAM, CancelPayment(PAYMENT, ORDER))]


def test_an_order_cancelled_before_it_asked_for_money_has_no_payment() -> None:
    assert react("OrderCancelled", asdict(cancelled("out_of_stock", payment_id="")), "", LATER, odd) == []


def test_everything_else_is_none_of_its_business() -> None:
    known = {event.__name__ for event in get_args(services.order.events.Event)}
    others = known - {"PaymentRequested", "OrderConfirmed", "OrderCancelled"}
    assert [react(name, {}, "", LATER, odd) for name in [*others, "FraudAlert"]] == [[]] * (len(others) + 1)
    assert others
