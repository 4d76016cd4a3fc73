"""A model of the payment provider: a book of answers. The same key gets the same answer, and each movement is recorded.

It fails the test if it is asked for an operation that is impossible at that point.
"""

from dataclasses import dataclass

from services.common.money import Money
from services.payment.commands import Kind, Outcome
from services.payment.decider import Operation


@dataclass(frozen=True, slots=True)
class Ask:
    operation: Operation
    mood: Outcome
    """The answer the provider will give, unless it has answered this key already."""


@dataclass(frozen=True, slots=True)
class Answered:
    kind: Kind
    key: str
    payment_id: str
    amount: Money
    outcome: Outcome


Book = frozenset[Answered]

initial: Book = frozenset()

POSSIBLE_AFTER: dict[Kind, set[frozenset[Kind]]] = {
    "authorize": {frozenset()},
    "capture": {frozenset({"authorize"})},
    "void": {frozenset({"authorize"})},
    "refund": {frozenset({"authorize", "capture"})},
}


def decide(ask: Ask, book: Book) -> list[Answered]:
    operation = ask.operation
    if any(answer.key == operation.key for answer in book):
        return []
    payment_id = operation.charge.payment_id
    done = frozenset(a.kind for a in book if a.payment_id == payment_id and a.outcome == "approved")
    assert done in POSSIBLE_AFTER[operation.kind], f"{operation.kind} after {set(done)}"
    return [Answered(operation.kind, operation.key, payment_id, operation.charge.amount, ask.mood)]


def evolve(book: Book, answer: Answered) -> Book:
    return book | {answer}


def moved(book: Book, kind: Kind) -> dict[str, int]:
    """Returns the amount in minor units that the provider has moved in this way, by payment id."""
    return {a.payment_id: a.amount.amount for a in book if a.kind == kind and a.outcome == "approved"}
