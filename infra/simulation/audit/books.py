"""Do the books balance? What shoppers were answered, against the orders, the provider's ledger and the shelves.

Pure: everything comes in as values. The books are those of one run, and of all who shopped during it.
"""

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from infra.shoppers.ledger import CheckedOut, Ledger
from services.replay.money import at_odds, kept, said
from shared.money import Money

PENDING = {"placed", "reserved"}
HOLDS_STOCK = {"placed", "reserved", "in_review", "confirmed"}


@dataclass(frozen=True, slots=True)
class Order:
    order_id: str
    cart_id: str
    customer_id: str
    status: str
    reason: str
    lines: Mapping[str, int]
    total: Money
    payment_id: str


@dataclass(frozen=True, slots=True)
class Movement:
    """Of money, as the provider has it."""

    payment_id: str
    kind: str
    money: Money


@dataclass(frozen=True, slots=True)
class Evidence:
    """As it is after the run. Orders are all those of the customers who bought; movements those since it began."""

    orders: Sequence[Order] = ()
    movements: Sequence[Movement] = ()
    shelves: Mapping[str, int] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Violation:
    rule: str
    about: str
    what: str

    def __str__(self) -> str:
        return f"{self.rule}: {self.about} {self.what}"


def violations(ledger: Ledger, evidence: Evidence) -> list[Violation]:
    return [
        *_failures(ledger),
        *_checkouts(ledger, evidence.orders),
        *_unasked(ledger, evidence.orders),
        *_cancels(ledger, evidence.orders),
        *_undecided(evidence.orders),
        *_money(evidence),
        *_stock(ledger, evidence),
    ]


def takings(orders: Iterable[Order]) -> dict[str, int]:
    """What confirmed orders come to, by currency."""
    return _sums(order.total for order in orders if order.status == "confirmed")


def moved(movements: Iterable[Movement], kind: str) -> dict[str, int]:
    return _sums(movement.money for movement in movements if movement.kind == kind)


def _sums(amounts: Iterable[Money]) -> dict[str, int]:
    sums: dict[str, int] = defaultdict(int)
    for money in amounts:
        sums[money.currency] += money.amount
    return dict(sums)


def _failures(ledger: Ledger) -> Iterator[Violation]:
    failed = Counter((a.call, a.status, a.problem) for a in ledger.answers if a.status >= 500)
    for (call, status, problem), count in failed.items():
        yield Violation("no 5xx", call, f"was answered {status} {problem}, {count} times")


def _checkouts(ledger: Ledger, orders: Sequence[Order]) -> Iterator[Violation]:
    """Each is one order, of that cart, for what was in it. Asked for twice, it is the same one."""
    found: dict[str, list[Order]] = defaultdict(list)
    for order in orders:
        found[order.order_id].append(order)
    carts: dict[str, str] = {}
    for checkout in ledger.checkouts:
        if carts.setdefault(checkout.order_id, checkout.cart_id) != checkout.cart_id:
            yield _wrong(checkout, f"is the order of cart {carts[checkout.order_id]} as well")
        matching = found[checkout.order_id]
        if len(matching) != 1:
            yield _wrong(checkout, f"was accepted, and is there {len(matching)} times")
        for order in matching:
            yield from _mismatches(checkout, order)


def _mismatches(checkout: CheckedOut, order: Order) -> Iterator[Violation]:
    total = Money(checkout.amount, checkout.currency)
    if (order.cart_id, order.customer_id) != (checkout.cart_id, checkout.customer_id):
        yield _wrong(checkout, f"is of cart {order.cart_id} of {order.customer_id}")
    if dict(order.lines) != checkout.lines:
        yield _wrong(checkout, f"is for {dict(order.lines)}, the cart had {checkout.lines}")
    if order.total != total:
        yield _wrong(checkout, f"comes to {order.total}, the cart to {total}")


def _wrong(checkout: CheckedOut, what: str) -> Violation:
    return Violation("a checkout is one order", f"order {checkout.order_id}", what)


def _unasked(ledger: Ledger, orders: Sequence[Order]) -> Iterator[Violation]:
    for order in orders:
        if order.cart_id not in ledger.asked:
            yield Violation("a checkout is one order", f"order {order.order_id}", "was never asked for")


def _cancels(ledger: Ledger, orders: Sequence[Order]) -> Iterator[Violation]:
    for order in orders:
        if order.order_id in ledger.cancelled and order.status != "cancelled":
            yield Violation("cancelled stays cancelled", f"order {order.order_id}", f"is {order.status}")


def _undecided(orders: Sequence[Order]) -> Iterator[Violation]:
    for order in orders:
        if order.status in PENDING:
            yield Violation("every order is decided", f"order {order.order_id}", f"is still {order.status}")


def _money(evidence: Evidence) -> Iterator[Violation]:
    """To the cent, order by order: what the provider took and did not give back is what a confirmed one costs."""
    left = kept(evidence.movements)
    for order in evidence.orders:
        if problem := at_odds(order.status, order.total, left.pop(order.payment_id, Counter())):
            yield Violation("money", f"order {order.order_id}", problem)
    for payment_id, has in left.items():
        if has != Counter():
            yield Violation("money", f"payment {payment_id}", f"kept {said(has)}, and is of no order")


def _stock(ledger: Ledger, evidence: Evidence) -> Iterator[Violation]:
    """What is on no shelf any more is sold, or held for an order. A cancelled one has neither: all of it came back."""
    gone: Counter[str] = Counter()
    for order in evidence.orders:
        if order.status in HOLDS_STOCK:
            gone.update(order.lines)
    for sku, before in ledger.opening.shelves.items():
        after = evidence.shelves.get(sku, 0)
        if before - gone[sku] != after:
            yield Violation("stock", sku, f"had {before} pieces, {gone[sku]} are sold or held, {after} are left")
