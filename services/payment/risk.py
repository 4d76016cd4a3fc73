"""How a payment looks beside the payments of late: rules as data, and a verdict with its reasons in words."""

from collections.abc import Iterator
from dataclasses import dataclass

from shared.money import Money

NEVER = 2**62


@dataclass(frozen=True, slots=True)
class Allow:
    pass


@dataclass(frozen=True, slots=True)
class Hold:
    """Somebody should look at it first."""

    reasons: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Refuse:
    reasons: tuple[str, ...]


Verdict = Allow | Hold | Refuse


@dataclass(frozen=True, slots=True)
class Limit:
    """From which value on a payment is held, and from which it is refused."""

    hold: int
    refuse: int


@dataclass(frozen=True, slots=True)
class Rules:
    window_ms: int = 10 * 60_000
    attempts: Limit = Limit(20, 50)
    declines: Limit = Limit(5, 10)
    tokens: Limit = Limit(4, 8)
    customers: Limit = Limit(4, 10)
    times_usual: Limit = Limit(10, NEVER)
    newcomer_amount: Limit = Limit(500_000, NEVER)
    """In minor units."""
    alert_score: Limit = Limit(50, 90)
    alert_ms: int = 24 * 3_600_000
    """How long an alert counts."""
    shared_tokens: frozenset[str] = frozenset(
        ("tok_ok", "tok_declined", "tok_insufficient_funds", "tok_timeout", "tok_flaky")
    )
    """Test cards of the provider that everybody uses: they tell nothing about who pays."""


@dataclass(frozen=True, slots=True)
class Features:
    """Of one payment, itself included; within the window, where it counts."""

    amount: Money
    attempts: int
    """Payments of this customer."""
    declines: int
    """Of these, declined by the provider."""
    tokens: int
    """Means of payment this customer has used."""
    customers: int
    """Customers who have used this means of payment."""
    times_usual: int
    """The amount as a multiple of what this customer usually spends; 0 for a newcomer."""
    is_newcomer: bool
    alert_score: int
    """The worst of the alerts about this customer or this means of payment; 0 without any."""
    alert_reasons: tuple[str, ...]


def assess(features: Features, rules: Rules) -> Verdict:
    signs = list(_signs(features, rules))
    if refused := tuple(words for value, limit, words in signs if value >= limit.refuse):
        return Refuse(refused)
    if held := tuple(words for value, limit, words in signs if value >= limit.hold):
        return Hold(held)
    return Allow()


def _signs(it: Features, rules: Rules) -> Iterator[tuple[int, Limit, str]]:
    within = f"within {rules.window_ms // 60_000} minutes"
    yield it.attempts, rules.attempts, f"{it.attempts} payments of this customer {within}"
    yield it.declines, rules.declines, f"{it.declines} declined payments of this customer {within}"
    yield it.tokens, rules.tokens, f"{it.tokens} means of payment used by this customer {within}"
    yield it.customers, rules.customers, f"{it.customers} customers with this means of payment {within}"
    yield it.times_usual, rules.times_usual, f"{it.amount} is {it.times_usual} times what this customer usually spends"
    newcomer_amount = it.amount.amount if it.is_newcomer else 0
    yield newcomer_amount, rules.newcomer_amount, f"{it.amount} from a customer who has bought little so far"
    why = "; ".join(it.alert_reasons)
    yield it.alert_score, rules.alert_score, f"alert of score {it.alert_score}: {why}"
