"""Checks the books: compares the answers that shoppers got with the orders, the provider's ledger and the shelves.

It is pure: everything comes in as values. The books cover one run, and everybody who shopped during it.
"""

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from infra.simulation.audit.ledger import CheckedOut, Ledger
from services.common.money import Money
from services.operations.verify.settlement import describe_mismatch, format_sums, sum_balances

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
    """A movement of money in the provider's ledger."""

    payment_id: str
    kind: str
    money: Money


@dataclass(frozen=True, slots=True)
class Evidence:
    """The data after a run: all orders of the customers who bought, and the movements since it began."""

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
        *_unrequested(ledger, evidence.orders),
        *_cancels(ledger, evidence.orders),
        *_undecided(evidence.orders),
        *_money(evidence),
        *_stock(ledger, evidence),
    ]


def takings(orders: Iterable[Order]) -> dict[str, int]:
    """Sums the totals of confirmed orders by currency."""
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
    """Checks that each checkout led to one order, of that cart and with its lines, even if it was sent twice."""
    found: dict[str, list[Order]] = defaultdict(list)
    for order in orders:
        found[order.order_id].append(order)
    carts: dict[str, str] = {}
    for checkout in ledger.checkouts:
        if carts.setdefault(checkout.order_id, checkout.cart_id) != checkout.cart_id:
            yield _wrong(checkout, f"is the order of cart {carts[checkout.order_id]} as well")
        matching = found[checkout.order_id]
        if len(matching) != 1:
            yield _wrong(checkout, f"was accepted, and exists {len(matching)} times")
        for order in matching:
            yield from _mismatches(checkout, order)


def _mismatches(checkout: CheckedOut, order: Order) -> Iterator[Violation]:
    total = Money(checkout.amount, checkout.currency)
    if (order.cart_id, order.customer_id) != (checkout.cart_id, checkout.customer_id):
        yield _wrong(checkout, f"is of cart {order.cart_id} of {order.customer_id}")
    if dict(order.lines) != checkout.lines:
        yield _wrong(checkout, f"is for {dict(order.lines)}, the cart had {checkout.lines}")
    if order.total != total:
        yield _wrong(checkout, f"has the total {order.total}, the cart had {total}")


def _wrong(checkout: CheckedOut, what: str) -> Violation:
    return Violation("a checkout is one order", f"order {checkout.order_id}", what)


def _unrequested(ledger: Ledger, orders: Sequence[Order]) -> Iterator[Violation]:
    for order in orders:
        if order.cart_id not in ledger.requested:
            yield Violation("a checkout is one order", f"order {order.order_id}", "was never requested")


def _cancels(ledger: Ledger, orders: Sequence[Order]) -> Iterator[Violation]:
    for order in orders:
        if order.order_id in ledger.cancelled and order.status != "cancelled":
            yield Violation("cancelled stays cancelled", f"order {order.order_id}", f"is {order.status}")


def _undecided(orders: Sequence[Order]) -> Iterator[Violation]:
    for order in orders:
        if order.status in PENDING:
            yield Violation("every order is decided", f"order {order.order_id}", f"is still {order.status}")


def _money(evidence: Evidence) -> Iterator[Violation]:
    """Checks each order to the cent: the provider captured and kept exactly the total of a confirmed order."""
    left = sum_balances(evidence.movements)
    for order in evidence.orders:
        if problem := describe_mismatch(order.status, order.total, left.pop(order.payment_id, Counter())):
            yield Violation("money", f"order {order.order_id}", problem)
    for payment_id, has in left.items():
        if has != Counter():
            yield Violation("money", f"payment {payment_id}", f"kept {format_sums(has)}, and has no order")


def _stock(ledger: Ledger, evidence: Evidence) -> Iterator[Violation]:
    """Checks that what left the shelves is sold or held for an order. A cancelled order gives all of it back."""
    gone: Counter[str] = Counter()
    for order in evidence.orders:
        if order.status in HOLDS_STOCK:
            gone.update(order.lines)
    for sku, before in ledger.opening.shelves.items():
        after = evidence.shelves.get(sku, 0)
        if before - gone[sku] != after:
            yield Violation("stock", sku, f"had {before} pieces, {gone[sku]} are sold or held, {after} are left")
