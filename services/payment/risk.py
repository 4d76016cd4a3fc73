"""The risk check of a payment: rules as data, features in, and a verdict with its reasons in words out. Pure."""

from collections.abc import Iterator
from dataclasses import dataclass

from services.common.money import Money

NEVER = 2**62


@dataclass(frozen=True, slots=True)
class Allow:
    """The provider may be asked at once."""


@dataclass(frozen=True, slots=True)
class Hold:
    """Support must review the payment before the provider is asked."""

    reasons: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Refuse:
    """The payment is declined, and the provider is not asked."""

    reasons: tuple[str, ...]


Verdict = Allow | Hold | Refuse


@dataclass(frozen=True, slots=True)
class Limit:
    """The values from which on a payment is held for review, and refused."""

    hold: int
    refuse: int


@dataclass(frozen=True, slots=True)
class Rules:
    """Every limit of the risk check. A test ties those on alerts to `[payment]` in the lake's rules.toml."""

    window_ms: int = 10 * 60_000
    attempts: Limit = Limit(20, 50)
    declines: Limit = Limit(5, 10)
    tokens: Limit = Limit(4, 8)
    customers: Limit = Limit(4, 10)
    times_usual: Limit = Limit(10, NEVER)
    newcomer_amount: Limit = Limit(500_000, NEVER)
    """Amount in minor units."""
    alert_score: Limit = Limit(50, 90)
    alert_ms: int = 24 * 3_600_000
    """Milliseconds for which an alert counts."""
    shared_tokens: frozenset[str] = frozenset(
        ("tok_ok", "tok_declined", "tok_insufficient_funds", "tok_timeout", "tok_flaky")
    )
    """Test cards of the provider. Everybody uses them, so they say nothing about a customer."""


@dataclass(frozen=True, slots=True)
class Features:
    """The facts that the rules look at for one payment. Counts are within the window and include the payment itself."""

    amount: Money
    attempts: int
    """Payments of this customer."""
    declines: int
    """Payments of this customer that the provider declined."""
    tokens: int
    """Means of payment that this customer used."""
    customers: int
    """Customers who used this means of payment."""
    times_usual: int
    """The amount as a multiple of what this customer usually spends; 0 for a newcomer."""
    is_newcomer: bool
    alert_score: int
    """The highest score of the current alerts about this customer or means of payment; 0 without any."""
    alert_reasons: tuple[str, ...]


def assess(features: Features, rules: Rules) -> Verdict:
    """Refuses or holds a payment of which any feature has reached its limit, with the reasons; allows it otherwise."""
    measured = list(_measured(features, rules))
    if refused := tuple(words for value, limit, words in measured if value >= limit.refuse):
        return Refuse(refused)
    if held := tuple(words for value, limit, words in measured if value >= limit.hold):
        return Hold(held)
    return Allow()


def _measured(it: Features, rules: Rules) -> Iterator[tuple[int, Limit, str]]:
    """Yields each feature with its limit and the reason to give if the limit is reached."""
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
