"""The ledger of a simulation: every answer that shoppers got, as a line of JSON, written at once and read by the audit.

It does not contain session tokens: the audit can mint its own.
"""

from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import BinaryIO

import orjson


@dataclass(frozen=True, slots=True)
class Opening:
    """The state before the first shopper: pieces on the shelves, and the last movement in the provider's ledger."""

    shelves: dict[str, int]
    last_movement: int


@dataclass(frozen=True, slots=True)
class Came:
    """A shopper begins a visit of this kind."""

    who: str
    visit: str


@dataclass(frozen=True, slots=True)
class Answered:
    """A request and its answer. `call` is the route, `path` the request itself; status 0 means no answer at all."""

    who: str
    call: str
    path: str
    status: int
    ms: float
    problem: str = ""
    """The type of the problem, without its prefix."""


@dataclass(frozen=True, slots=True)
class Asked:
    """A checkout is about to be sent. Even if its answer gets lost, there may be an order."""

    cart_id: str


@dataclass(frozen=True, slots=True)
class CheckedOut:
    """An accepted checkout, with the cart as the shop last returned it."""

    order_id: str
    cart_id: str
    customer_id: str
    token: str
    lines: dict[str, int]
    amount: int
    currency: str


@dataclass(frozen=True, slots=True)
class CancelAccepted:
    order_id: str


@dataclass(frozen=True, slots=True)
class Decided:
    """The outcome of an order as a shopper saw it, so many milliseconds after the checkout was sent."""

    order_id: str
    status: str
    ms: float


Entry = Opening | Came | Answered | Asked | CheckedOut | CancelAccepted | Decided
KINDS: dict[str, type[Entry]] = {
    kind.__name__: kind for kind in (Opening, Came, Answered, Asked, CheckedOut, CancelAccepted, Decided)
}


class Ledger:
    def __init__(self, file: BinaryIO | None = None) -> None:
        self.file = file
        self.opening = Opening({}, 0)
        self.visits: Counter[str] = Counter()
        self.answers: list[Answered] = []
        self.checkouts: list[CheckedOut] = []
        self.requested: set[str] = set()
        self.cancelled: set[str] = set()
        self.decided: dict[str, Decided] = {}
        self.tally: Counter[str] = Counter()
        """Successful answers by call."""

    def note(self, entry: Entry) -> None:
        if self.file:
            self.file.write(orjson.dumps({"kind": type(entry).__name__} | asdict(entry)) + b"\n")
        match entry:
            case Opening():
                self.opening = entry
            case Came():
                self.visits[entry.visit] += 1
            case Answered():
                self.answers.append(entry)
                self.tally[entry.call] += 200 <= entry.status < 300
            case Asked():
                self.requested.add(entry.cart_id)
            case CheckedOut():
                self.checkouts.append(entry)
            case CancelAccepted():
                self.cancelled.add(entry.order_id)
            case Decided():
                self.decided[entry.order_id] = entry

    @property
    def customers(self) -> set[str]:
        """The customers who bought."""
        return {checkout.customer_id for checkout in self.checkouts}


@contextmanager
def create_ledger(path: Path) -> Iterator[Ledger]:
    """Creates the file of a new ledger, which is complete at the end of the block."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("wb") as file:
        yield Ledger(file)


@contextmanager
def continue_ledger(path: Path) -> Iterator[Ledger]:
    """Reads an existing ledger and appends to it."""
    ledger = read_ledger(path)
    with path.open("ab") as ledger.file:
        yield ledger


def read_ledger(path: Path) -> Ledger:
    ledger = Ledger()
    with path.open("rb") as lines:
        for line in lines:
            fields = orjson.loads(line)
            ledger.note(KINDS[fields.pop("kind")](**fields))
    return ledger
