"""What the provider kept of a payment beside what its order owes. Pure; `till simulate` and `till verify` ask the same.

Money is compared order by order and to the cent: sums would let two wrongs make a right.
"""

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping
from typing import Protocol

from shared.money import Money

SIGNS = {"captured": 1, "refunded": -1}


class Movement(Protocol):
    """Of money, as the provider has it."""

    @property
    def payment_id(self) -> str: ...
    @property
    def kind(self) -> str: ...
    @property
    def money(self) -> Money: ...


Kept = dict[str, Counter[str]]
"""By payment and currency: what was taken and not given back."""


def kept(movements: Iterable[Movement]) -> Kept:
    found: Kept = defaultdict(Counter)
    for movement in movements:
        if movement.kind in SIGNS:
            found[movement.payment_id][movement.money.currency] += SIGNS[movement.kind] * movement.money.amount
    return found


def due(status: str, total: Money) -> Counter[str]:
    return Counter({total.currency: total.amount} if status == "confirmed" else {})


def at_odds(status: str, total: Money, has: Counter[str]) -> str:
    """What is wrong between an order and what was kept for it; empty where nothing is."""
    owed = due(status, total)
    return "" if has == owed else f"is {status}: due {said(owed)}, kept {said(has)}"


def said(sums: Mapping[str, int]) -> str:
    return " and ".join(str(Money(amount, currency)) for currency, amount in sums.items() if amount) or "nothing"
