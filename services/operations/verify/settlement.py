"""Compares the money the provider kept with what orders owe. Pure, and used by `till verify` and `till simulate` alike.

Money is compared order by order and to the cent: in sums, two errors could cancel each other out.
"""

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping
from typing import Protocol

from services.common.money import Money

SIGNS = {"captured": 1, "refunded": -1}


class Movement(Protocol):
    """A movement of money in the provider's ledger."""

    @property
    def payment_id(self) -> str: ...
    @property
    def kind(self) -> str: ...
    @property
    def money(self) -> Money: ...


Balances = dict[str, Counter[str]]
"""Minor units that were captured and not refunded, by payment and currency."""


def sum_balances(movements: Iterable[Movement]) -> Balances:
    found: Balances = defaultdict(Counter)
    for movement in movements:
        if movement.kind in SIGNS:
            found[movement.payment_id][movement.money.currency] += SIGNS[movement.kind] * movement.money.amount
    return found


def amount_due(status: str, total: Money) -> Counter[str]:
    return Counter({total.currency: total.amount} if status == "confirmed" else {})


def describe_mismatch(status: str, total: Money, has: Counter[str]) -> str:
    """Says what is wrong between an order and the money kept for it; empty if nothing is."""
    owed = amount_due(status, total)
    return "" if has == owed else f"is {status}: due {format_sums(owed)}, kept {format_sums(has)}"


def format_sums(sums: Mapping[str, int]) -> str:
    return " and ".join(str(Money(amount, currency)) for currency, amount in sums.items() if amount) or "nothing"
