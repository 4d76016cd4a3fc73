"""The test tokens of the simulated provider. `tok_ok_...` behaves as `tok_ok`, so there are any number of cards."""

from typing import NamedTuple


class Behaviour(NamedTuple):
    """The way in which the provider treats payments with a token."""

    refusal: str = ""
    """The reason for which it declines; empty if it approves."""
    is_late: bool = False
    """True if it does the work and answers only after the caller has given up."""
    failures: int = 0
    """Number of times it fails before it does the work, per idempotency key."""


BEHAVIOURS = {
    "tok_ok": Behaviour(),
    "tok_declined": Behaviour(refusal="the card was declined"),
    "tok_insufficient_funds": Behaviour(refusal="insufficient funds"),
    "tok_timeout": Behaviour(is_late=True),
    "tok_flaky": Behaviour(failures=2),
}
UNKNOWN = Behaviour(refusal="the token is unknown")


def behaviour_of(token: str) -> Behaviour:
    kinds = (behaviour for kind, behaviour in BEHAVIOURS.items() if token == kind or token.startswith(f"{kind}_"))
    return next(kinds, UNKNOWN)
