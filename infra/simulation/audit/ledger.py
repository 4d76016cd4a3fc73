"""What shoppers were answered: a line of JSON for each entry, written as it comes, read again to be checked.

Tokens of sessions are not in it: whoever may check the books can mint their own.
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
    """Before the first shopper came: pieces on the shelves, and the last movement in the provider's ledger."""

    shelves: dict[str, int]
    last_movement: int


@dataclass(frozen=True, slots=True)
class Came:
    """For what sort of a visit."""

    who: str
    visit: str


@dataclass(frozen=True, slots=True)
class Answered:
    """A request and its answer. `call` names the route, `path` the request itself; status 0 is no answer at all."""

    who: str
    call: str
    path: str
    status: int
    ms: float
    problem: str = ""
    """The type of the problem, without its prefix."""


@dataclass(frozen=True, slots=True)
class Asked:
    """A checkout is about to be sent: should its answer get lost, there may be an order all the same."""

    cart_id: str


@dataclass(frozen=True, slots=True)
class CheckedOut:
    """An accepted checkout, with the cart as it was answered before it."""

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
    """Seen by a shopper who waited: what became of the order, so long after its checkout was sent."""

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
        self.asked: set[str] = set()
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
                self.asked.add(entry.cart_id)
            case CheckedOut():
                self.checkouts.append(entry)
            case CancelAccepted():
                self.cancelled.add(entry.order_id)
            case Decided():
                self.decided[entry.order_id] = entry

    @property
    def customers(self) -> set[str]:
        """Those who bought."""
        return {checkout.customer_id for checkout in self.checkouts}


@contextmanager
def written_to(path: Path) -> Iterator[Ledger]:
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("wb") as file:
        yield Ledger(file)


@contextmanager
def continued(path: Path) -> Iterator[Ledger]:
    """What is there already, and what comes."""
    ledger = read_from(path)
    with path.open("ab") as ledger.file:
        yield ledger


def read_from(path: Path) -> Ledger:
    ledger = Ledger()
    with path.open("rb") as lines:
        for line in lines:
            fields = orjson.loads(line)
            ledger.note(KINDS[fields.pop("kind")](**fields))
    return ledger
