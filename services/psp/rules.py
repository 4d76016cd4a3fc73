"""What the provider does when asked, given what it has done for that payment before. Pure."""

from typing import Literal, NamedTuple

from services.psp.tokens import manner_of
from shared.errors import Refused

Kind = Literal["authorize", "capture", "void", "refund"]


class Request(NamedTuple):
    kind: Kind
    payment_id: str
    amount: int = 0
    """Minor units. Of a void it is known."""
    currency: str = ""
    token: str = ""


class Deed(NamedTuple):
    kind: Literal["authorized", "declined", "captured", "voided", "refunded"]
    amount: int
    currency: str
    token: str
    reason: str = ""
    """Why it was declined."""


def decide(request: Request, done: list[Deed]) -> Deed:
    match request.kind:
        case "authorize":
            return _authorize(request, done)
        case "capture":
            return _capture(request, _open_authorization(done))
        case "void":
            return _open_authorization(done)._replace(kind="voided")
        case "refund":
            return _refund(request, done)


def authorization(done: list[Deed]) -> Deed | None:
    return next((deed for deed in done if deed.kind == "authorized"), None)


def _authorize(request: Request, done: list[Deed]) -> Deed:
    if authorization(done):
        raise Refused("already-authorized", "This payment is authorised already.")
    if refusal := manner_of(request.token).refusal:
        return Deed("declined", request.amount, request.currency, request.token, refusal)
    return Deed("authorized", request.amount, request.currency, request.token)


def _capture(request: Request, authorized: Deed) -> Deed:
    """Once. What is not taken of the amount is let go."""
    _check(request, authorized.currency, authorized.amount)
    return authorized._replace(kind="captured", amount=request.amount)


def _refund(request: Request, done: list[Deed]) -> Deed:
    captured = next((deed for deed in done if deed.kind == "captured"), None)
    if captured is None:
        raise Refused("not-captured", "Nothing of this payment was captured.")
    refunded = sum(deed.amount for deed in done if deed.kind == "refunded")
    _check(request, captured.currency, captured.amount - refunded)
    return captured._replace(kind="refunded", amount=request.amount)


def _open_authorization(done: list[Deed]) -> Deed:
    authorized = authorization(done)
    if authorized is None:
        raise Refused("not-authorized", "This payment is not authorised.")
    closed = next((deed.kind for deed in done if deed.kind in ("captured", "voided")), None)
    if closed:
        raise Refused(f"already-{closed}", f"This payment is {closed} already.")
    return authorized


def _check(request: Request, currency: str, most: int) -> None:
    if request.currency != currency:
        raise Refused("currency-mixed", f"This payment is in {currency}.")
    if request.amount > most:
        raise Refused("amount-too-large", f"No more than {most} is left of this payment.")
