"""The provider's book in SQLite: every movement of money, appended and never changed, and every answer given."""

import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import NamedTuple

from services.psp.rules import Deed, Request, authorization, decide
from shared.errors import Refused

# The rules say that a payment is captured once; the index would not let them err.
SCHEMA = """
CREATE TABLE IF NOT EXISTS movements (
    id INTEGER PRIMARY KEY,
    payment_id TEXT NOT NULL,
    at TEXT NOT NULL,
    kind TEXT NOT NULL CHECK (kind IN ('authorized', 'declined', 'captured', 'voided', 'refunded')),
    amount INTEGER NOT NULL CHECK (amount > 0),
    currency TEXT NOT NULL,
    token TEXT NOT NULL,
    reason TEXT NOT NULL
) STRICT;
CREATE INDEX IF NOT EXISTS of_payment ON movements (payment_id);
CREATE UNIQUE INDEX IF NOT EXISTS once ON movements (payment_id, kind)
    WHERE kind IN ('authorized', 'captured', 'voided');
CREATE TABLE IF NOT EXISTS answers (
    key TEXT PRIMARY KEY,
    request TEXT NOT NULL,
    movement INTEGER NOT NULL REFERENCES movements
) STRICT, WITHOUT ROWID;
"""


class Movement(NamedTuple):
    id: int
    payment_id: str
    at: str
    deed: Deed

    @property
    def reference(self) -> str:
        return f"psp-{self.id}"


class Answer(NamedTuple):
    movement: Movement
    is_new: bool
    """Whether it was done just now."""


class Book:
    """For one thread at a time. What was answered within `transaction` is told after it: then it is on the disk."""

    def __init__(self, file: Path) -> None:
        file.parent.mkdir(parents=True, exist_ok=True)
        self._db = sqlite3.connect(file, isolation_level=None, check_same_thread=False)
        self._db.execute("PRAGMA journal_mode = WAL")
        self._db.execute("PRAGMA synchronous = FULL")
        self._db.executescript(SCHEMA)

    def close(self) -> None:
        self._db.close()

    @contextmanager
    def transaction(self) -> Iterator[None]:
        self._db.execute("BEGIN IMMEDIATE")
        try:
            yield
            self._db.execute("COMMIT")
        finally:
            if self._db.in_transaction:
                self._db.execute("ROLLBACK")

    def answer(self, key: str, request: Request) -> Answer:
        """Do what is asked for, once for each key. What is against the rules is refused, and leaves no trace."""
        given = self._db.execute("SELECT request, movement FROM answers WHERE key = ?", (key,)).fetchone()
        if given is None:
            deed = decide(request, [movement.deed for movement in self.of_payment(request.payment_id)])
            movement = self._append(request.payment_id, deed)
            self._db.execute("INSERT INTO answers VALUES (?, ?, ?)", (key, repr(request), movement.id))
            return Answer(movement, is_new=True)
        if given[0] != repr(request):
            raise Refused("idempotency-key-reused", "This Idempotency-Key was used with another request.")
        [movement] = self._read("id = ?", given[1])
        return Answer(movement, is_new=False)

    def of_payment(self, payment_id: str) -> list[Movement]:
        return self._read("payment_id = ?", payment_id)

    def since(self, number: int) -> list[Movement]:
        return self._read("id > ?", number)

    def token_of(self, payment_id: str) -> str:
        authorized = authorization([movement.deed for movement in self.of_payment(payment_id)])
        return authorized.token if authorized else ""

    def totals(self) -> dict[str, dict[str, int]]:
        """By currency, how much was authorised, captured and so on."""
        totals: dict[str, dict[str, int]] = {}
        sums = "SELECT currency, kind, sum(amount) FROM movements GROUP BY currency, kind"
        for currency, kind, amount in self._db.execute(sums):
            nothing = dict.fromkeys(("authorized", "declined", "captured", "voided", "refunded"), 0)
            totals.setdefault(currency, nothing)[kind] = amount
        return totals

    def _append(self, payment_id: str, deed: Deed) -> Movement:
        at = datetime.now(UTC).isoformat(timespec="milliseconds")
        row = payment_id, at, *deed
        number = self._db.execute("INSERT INTO movements VALUES (NULL, ?, ?, ?, ?, ?, ?, ?)", row).lastrowid
        assert number
        return Movement(number, payment_id, at, deed)

    def _read(self, condition: str, value: int | str) -> list[Movement]:
        rows = self._db.execute(f"SELECT * FROM movements WHERE {condition} ORDER BY id", (value,))
        return [Movement(number, payment_id, at, Deed(*deed)) for number, payment_id, at, *deed in rows]
