"""The tokens of the simulated provider. `tok_ok_...` behaves as `tok_ok`: so there are as many cards as one likes."""

from typing import NamedTuple


class Manner(NamedTuple):
    """How the provider deals with what is paid by a token."""

    refusal: str = ""
    """Why it declines, where it does."""
    is_late: bool = False
    """It does the work, and answers when nobody listens any more."""
    failures: int = 0
    """How often it fails before it does the work, for each idempotency key."""


MANNERS = {
    "tok_ok": Manner(),
    "tok_declined": Manner(refusal="the card was declined"),
    "tok_insufficient_funds": Manner(refusal="insufficient funds"),
    "tok_timeout": Manner(is_late=True),
    "tok_flaky": Manner(failures=2),
}
UNKNOWN = Manner(refusal="the token is unknown")


def manner_of(token: str) -> Manner:
    kinds = (manner for kind, manner in MANNERS.items() if token == kind or token.startswith(f"{kind}_"))
    return next(kinds, UNKNOWN)
