"""The payment provider as a model: a book of answers. The same key gets the same answer, and money is real.

What it is never to be asked for, it does not answer: the test that asked has found a bug.
"""

from dataclasses import dataclass

from services.payment.commands import Kind, Outcome
from services.payment.decider import Operation
from shared.money import Money


@dataclass(frozen=True, slots=True)
class Ask:
    operation: Operation
    mood: Outcome
    """What it will say, unless it has said something already."""


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
    """Payment id -> minor units for which the provider has done this."""
    return {a.payment_id: a.amount.amount for a in book if a.kind == kind and a.outcome == "approved"}
