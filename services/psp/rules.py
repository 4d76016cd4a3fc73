"""Decides what an operation does, given what was done for that payment before. Pure."""

from typing import Literal, NamedTuple

from services.psp.tokens import behaviour_of
from shared.errors import Refused

Kind = Literal["authorize", "capture", "void", "refund"]


class Request(NamedTuple):
    kind: Kind
    payment_id: str
    amount: int = 0
    """Minor units. A void names no amount: it releases what was authorised."""
    currency: str = ""
    token: str = ""


class Entry(NamedTuple):
    """The result of an operation: the part of a movement that the rules decide."""

    kind: Literal["authorized", "declined", "captured", "voided", "refunded"]
    amount: int
    currency: str
    token: str
    reason: str = ""
    """Why it was declined."""


def decide(request: Request, before: list[Entry]) -> Entry:
    match request.kind:
        case "authorize":
            return _authorize(request, before)
        case "capture":
            return _capture(request, _open_authorization(before))
        case "void":
            return _open_authorization(before)._replace(kind="voided")
        case "refund":
            return _refund(request, before)


def authorization(before: list[Entry]) -> Entry | None:
    return next((entry for entry in before if entry.kind == "authorized"), None)


def _authorize(request: Request, before: list[Entry]) -> Entry:
    if authorization(before):
        raise Refused("already-authorized", "This payment is authorised already.")
    if refusal := behaviour_of(request.token).refusal:
        return Entry("declined", request.amount, request.currency, request.token, refusal)
    return Entry("authorized", request.amount, request.currency, request.token)


def _capture(request: Request, authorized: Entry) -> Entry:
    """Captures once. The part of the authorised amount that is not captured is released."""
    _check(request, authorized.currency, authorized.amount)
    return authorized._replace(kind="captured", amount=request.amount)


def _refund(request: Request, before: list[Entry]) -> Entry:
    captured = next((entry for entry in before if entry.kind == "captured"), None)
    if captured is None:
        raise Refused("not-captured", "Nothing of this payment was captured.")
    refunded = sum(entry.amount for entry in before if entry.kind == "refunded")
    _check(request, captured.currency, captured.amount - refunded)
    return captured._replace(kind="refunded", amount=request.amount)


def _open_authorization(before: list[Entry]) -> Entry:
    authorized = authorization(before)
    if authorized is None:
        raise Refused("not-authorized", "This payment is not authorised.")
    closed = next((entry.kind for entry in before if entry.kind in ("captured", "voided")), None)
    if closed:
        raise Refused(f"already-{closed}", f"This payment is {closed} already.")
    return authorized


def _check(request: Request, currency: str, most: int) -> None:
    if request.currency != currency:
        raise Refused("currency-mixed", f"This payment is in {currency}.")
    if request.amount > most:
        raise Refused("amount-too-large", f"No more than {most} is left of this payment.")
