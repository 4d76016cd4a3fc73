"""The rules of the simulated provider: which operation is allowed after which."""

import pytest

from services.psp.rules import Entry, Request, decide
from shared.errors import Refused

AUTHORIZE = Request("authorize", "p1", 6370, "EUR", "tok_ok")
CAPTURE = Request("capture", "p1", 6370, "EUR")
VOID = Request("void", "p1")
REFUND = Request("refund", "p1", 6370, "EUR")

AUTHORIZED = Entry("authorized", 6370, "EUR", "tok_ok")
DECLINED = Entry("declined", 6370, "EUR", "tok_declined", "the card was declined")
CAPTURED = Entry("captured", 6370, "EUR", "tok_ok")
VOIDED = Entry("voided", 6370, "EUR", "tok_ok")
REFUNDED = Entry("refunded", 6370, "EUR", "tok_ok")


@pytest.mark.parametrize(
    ("before", "request_", "entry"),
    [
        ([], AUTHORIZE, AUTHORIZED),
        ([AUTHORIZED], CAPTURE, CAPTURED),
        ([AUTHORIZED], VOID, VOIDED),
        ([AUTHORIZED, CAPTURED], REFUND, REFUNDED),
        ([DECLINED], AUTHORIZE, AUTHORIZED),
        ([DECLINED, AUTHORIZED], CAPTURE, CAPTURED),
    ],
)
def test_money_is_authorised_then_captured_or_voided_and_refunded(
    before: list[Entry], request_: Request, entry: Entry
) -> None:
    assert decide(request_, before) == entry


@pytest.mark.parametrize(
    ("token", "reason"),
    [
        ("tok_declined", "the card was declined"),
        ("tok_insufficient_funds", "insufficient funds"),
        ("tok_declined_of_ann", "the card was declined"),
        ("tok_okay", "the token is unknown"),
        ("stolen", "the token is unknown"),
    ],
)
def test_some_tokens_are_declined(token: str, reason: str) -> None:
    assert decide(AUTHORIZE._replace(token=token), []) == Entry("declined", 6370, "EUR", token, reason)


@pytest.mark.parametrize("token", ["tok_ok", "tok_timeout", "tok_flaky", "tok_ok_of_ann", "tok_flaky_of_bob"])
def test_the_other_test_tokens_are_approved(token: str) -> None:
    assert decide(AUTHORIZE._replace(token=token), []).kind == "authorized"


@pytest.mark.parametrize(
    ("before", "request_", "code"),
    [
        ([AUTHORIZED], AUTHORIZE, "already-authorized"),
        ([], CAPTURE, "not-authorized"),
        ([DECLINED], CAPTURE, "not-authorized"),
        ([AUTHORIZED, CAPTURED], CAPTURE, "already-captured"),
        ([AUTHORIZED, CAPTURED, REFUNDED], CAPTURE, "already-captured"),
        ([AUTHORIZED, VOIDED], CAPTURE, "already-voided"),
        ([], VOID, "not-authorized"),
        ([AUTHORIZED, CAPTURED], VOID, "already-captured"),
        ([AUTHORIZED, VOIDED], VOID, "already-voided"),
        ([AUTHORIZED], REFUND, "not-captured"),
        ([AUTHORIZED, VOIDED], REFUND, "not-captured"),
        ([AUTHORIZED, CAPTURED, REFUNDED], REFUND, "amount-too-large"),
        ([AUTHORIZED], CAPTURE._replace(amount=6371), "amount-too-large"),
        ([AUTHORIZED], CAPTURE._replace(currency="USD"), "currency-mixed"),
        ([AUTHORIZED, CAPTURED], REFUND._replace(currency="USD"), "currency-mixed"),
    ],
)
def test_an_operation_out_of_turn_is_refused(before: list[Entry], request_: Request, code: str) -> None:
    with pytest.raises(Refused) as refusal:
        decide(request_, before)
    assert refusal.value.code == code


def test_a_refund_may_come_in_parts_up_to_what_was_captured() -> None:
    captured = [AUTHORIZED, CAPTURED._replace(amount=5000)]
    part = decide(REFUND._replace(amount=3000), captured)
    assert part == REFUNDED._replace(amount=3000)
    assert decide(REFUND._replace(amount=2000), [*captured, part]).amount == 2000
    with pytest.raises(Refused, match="No more than 2000"):
        decide(REFUND._replace(amount=2001), [*captured, part])
