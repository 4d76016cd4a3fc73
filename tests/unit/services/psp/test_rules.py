"""What the provider does and does not do with money."""

import pytest

from services.psp.rules import Deed, Request, decide
from shared.errors import Refused

AUTHORIZE = Request("authorize", "p1", 6370, "EUR", "tok_ok")
CAPTURE = Request("capture", "p1", 6370, "EUR")
VOID = Request("void", "p1")
REFUND = Request("refund", "p1", 6370, "EUR")

AUTHORIZED = Deed("authorized", 6370, "EUR", "tok_ok")
DECLINED = Deed("declined", 6370, "EUR", "tok_declined", "the card was declined")
CAPTURED = Deed("captured", 6370, "EUR", "tok_ok")
VOIDED = Deed("voided", 6370, "EUR", "tok_ok")
REFUNDED = Deed("refunded", 6370, "EUR", "tok_ok")


@pytest.mark.parametrize(
    ("done", "request_", "deed"),
    [
        ([], AUTHORIZE, AUTHORIZED),
        ([AUTHORIZED], CAPTURE, CAPTURED),
        ([AUTHORIZED], VOID, VOIDED),
        ([AUTHORIZED, CAPTURED], REFUND, REFUNDED),
        ([DECLINED], AUTHORIZE, AUTHORIZED),
        ([DECLINED, AUTHORIZED], CAPTURE, CAPTURED),
    ],
)
def test_the_way_of_money(done: list[Deed], request_: Request, deed: Deed) -> None:
    assert decide(request_, done) == deed


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
    assert decide(AUTHORIZE._replace(token=token), []) == Deed("declined", 6370, "EUR", token, reason)


@pytest.mark.parametrize("token", ["tok_ok", "tok_timeout", "tok_flaky", "tok_ok_of_ann", "tok_flaky_of_bob"])
def test_some_are_not(token: str) -> None:
    assert decide(AUTHORIZE._replace(token=token), []).kind == "authorized"


@pytest.mark.parametrize(
    ("done", "request_", "code"),
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
def test_what_it_does_not_do(done: list[Deed], request_: Request, code: str) -> None:
    with pytest.raises(Refused) as refusal:
        decide(request_, done)
    assert refusal.value.code == code


def test_a_refund_may_come_in_parts_up_to_what_was_captured() -> None:
    captured = [AUTHORIZED, CAPTURED._replace(amount=5000)]
    part = decide(REFUND._replace(amount=3000), captured)
    assert part == REFUNDED._replace(amount=3000)
    assert decide(REFUND._replace(amount=2000), [*captured, part]).amount == 2000
    with pytest.raises(Refused, match="No more than 2000"):
        decide(REFUND._replace(amount=2001), [*captured, part])
