"""Which orders hold how many pieces of a product, which have bought how many, and which are done with it.

A value that never changes, made for streams of any length: a hot product may have tens of thousands of open
reservations, and copying them all at each event would make its replay quadratic. So only the latest changes
are copied, and every so often merged into the rest.
"""

from collections.abc import Mapping
from itertools import islice
from typing import NamedTuple

MERGE_AT = 128
REMEMBERED = 2048
"""How many orders that hold nothing are remembered at least, to know a repeated message by."""


class Reservations(NamedTuple):  # one is made at every event: a frozen dataclass takes twice as long
    held: Mapping[str, int]
    settled: Mapping[str, int]
    recent: Mapping[str, int]
    """Changes not yet merged. They hide what `held` says of the same order."""

    def pieces(self, order_id: str) -> int | None:
        """What the order holds; below 0, what it has bought; 0 where it was undone, None where it was never heard of,
        or has been settled long ago.
        """
        for known in (self.recent, self.held, self.settled):
            if order_id in known:
                return known[order_id]
        return None

    def note(self, order_id: str, pieces: int) -> "Reservations":
        recent = {**self.recent, order_id: pieces}
        if len(recent) < MERGE_AT:
            return Reservations(self.held, self.settled, recent)
        return self._merge(recent)

    def _merge(self, recent: Mapping[str, int]) -> "Reservations":
        held, settled = dict(self.held), dict(self.settled)
        for order_id, pieces in recent.items():
            if pieces > 0:
                held[order_id] = pieces
            else:
                held.pop(order_id, None)
                settled.pop(order_id, None)  # at the end are those that were settled last
                settled[order_id] = pieces
        for order_id in list(islice(settled, max(0, len(settled) - REMEMBERED))):
            del settled[order_id]
        return Reservations(held, settled, {})


NO_RESERVATIONS = Reservations({}, {}, {})
