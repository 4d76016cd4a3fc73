"""The share of each order in one product: pieces held, pieces bought, or none any more because it was undone.

`Reservations` is an immutable value made for streams of any length. A hot product may have tens of thousands of open
reservations, and copying them all at each event would make its replay quadratic. So an event copies only the latest
changes (at most `MERGE_AT`), which are merged into the rest from time to time.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import islice
from typing import NamedTuple

MERGE_AT = 128
REMEMBERED = 2048
"""Number of settled orders that are remembered at least, so that a repeated message is recognised."""


@dataclass(frozen=True, slots=True)
class Held:
    """The order has reserved these pieces and neither bought them nor given them back."""

    pieces: int


@dataclass(frozen=True, slots=True)
class Bought:
    """The order was confirmed: these pieces are sold."""

    pieces: int


@dataclass(frozen=True, slots=True)
class Undone:
    """The order was rejected or cancelled: it has no pieces and gets none any more."""


Reservation = Held | Bought | Undone
UNDONE = Undone()


class Entry(NamedTuple):
    """A reservation as a plain record, which a snapshot can store. Both are 0 in an undone one."""

    held: int
    bought: int


class Reservations(NamedTuple):  # one is made at every event, and a frozen dataclass takes twice as long
    held: Mapping[str, int]
    """Pieces held, by order."""
    settled: Mapping[str, int]
    """Pieces bought, by order, and 0 for an undone order; the order settled last is at the end."""
    recent: Mapping[str, Entry]
    """Changes that are not merged yet. They override what `held` and `settled` have on the same order."""

    def of(self, order_id: str) -> Reservation | None:
        """Returns what the order has, or None if it never asked or was settled too long ago to be remembered."""
        if entry := self.recent.get(order_id):
            return Held(entry.held) if entry.held else _settled(entry.bought)
        if order_id in self.held:
            return Held(self.held[order_id])
        return _settled(self.settled[order_id]) if order_id in self.settled else None

    def holders(self) -> Iterator[tuple[str, int]]:
        """Yields each order that holds pieces, with their number."""
        for order_id, pieces in self.held.items():
            if order_id not in self.recent:
                yield order_id, pieces
        for order_id, entry in self.recent.items():
            if entry.held:
                yield order_id, entry.held

    def note(self, order_id: str, reservation: Reservation) -> "Reservations":
        """Returns the reservations with this one in place of what the order had before."""
        recent = {**self.recent, order_id: _entry(reservation)}
        if len(recent) < MERGE_AT:
            return Reservations(self.held, self.settled, recent)
        return self._merge(recent)

    def _merge(self, recent: Mapping[str, Entry]) -> "Reservations":
        held, settled = dict(self.held), dict(self.settled)
        for order_id, entry in recent.items():
            if entry.held:
                held[order_id] = entry.held
            else:
                held.pop(order_id, None)
                settled.pop(order_id, None)  # moves it to the end
                settled[order_id] = entry.bought
        for order_id in list(islice(settled, max(0, len(settled) - REMEMBERED))):
            del settled[order_id]
        return Reservations(held, settled, {})


def _settled(bought: int) -> Bought | Undone:
    return Bought(bought) if bought else UNDONE


def _entry(reservation: Reservation) -> Entry:
    match reservation:
        case Held(pieces):
            return Entry(pieces, 0)
        case Bought(pieces):
            return Entry(0, pieces)
        case Undone():
            return Entry(0, 0)


NO_RESERVATIONS = Reservations({}, {}, {})
