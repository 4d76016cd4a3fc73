"""The provider's ledger in SQLite: every movement of money, appended and never changed, and every answer given."""

import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from threading import Lock
from typing import NamedTuple, Self

from services.psp.rules import Entry, Request, authorization, decide
from shared.errors import Refused

# The rules already say that a payment is captured once; the unique index holds even if they are wrong.
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
    entry: Entry

    @property
    def reference(self) -> str:
        return f"psp-{self.id}"


class Answer(NamedTuple):
    movement: Movement
    is_new: bool
    """True if the operation was performed just now, False if this repeats an earlier answer."""


class Ledger:
    """Serves one thread at a time. An answer is returned only after its commit has reached the disk."""

    def __init__(self, file: Path) -> None:
        file.parent.mkdir(parents=True, exist_ok=True)
        self._lock = Lock()
        self._db = sqlite3.connect(file, isolation_level=None, check_same_thread=False)
        self._db.execute("PRAGMA journal_mode = WAL")
        self._db.execute("PRAGMA synchronous = FULL")
        self._db.executescript(SCHEMA)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        with self._lock:
            self._db.close()

    def answer(self, key: str, request: Request) -> Answer:
        """Performs the request once per key. A request that breaks the rules is refused and leaves no trace."""
        with self._transaction():
            given = self._db.execute("SELECT request, movement FROM answers WHERE key = ?", (key,)).fetchone()
            if given is None:
                return Answer(self._perform(key, request), is_new=True)
            if given[0] != repr(request):
                raise Refused("idempotency-key-reused", "This Idempotency-Key was used with another request.")
            [movement] = self._read("id = ?", given[1])
            return Answer(movement, is_new=False)

    def of_payment(self, payment_id: str) -> list[Movement]:
        with self._lock:
            return self._read("payment_id = ?", payment_id)

    def token_of(self, payment_id: str) -> str:
        """Returns the token that the payment was authorised with, or an empty string."""
        authorized = authorization([movement.entry for movement in self.of_payment(payment_id)])
        return authorized.token if authorized else ""

    def since(self, number: int) -> tuple[list[Movement], dict[str, dict[str, int]]]:
        """Returns the movements after this id, and the sums of all movements by currency and kind."""
        with self._lock:
            return self._read("id > ?", number), self._totals()

    @contextmanager
    def _transaction(self) -> Iterator[None]:
        with self._lock:
            self._db.execute("BEGIN IMMEDIATE")
            try:
                yield
                self._db.execute("COMMIT")
            finally:
                if self._db.in_transaction:
                    self._db.execute("ROLLBACK")

    def _perform(self, key: str, request: Request) -> Movement:
        before = [movement.entry for movement in self._read("payment_id = ?", request.payment_id)]
        movement = self._append(request.payment_id, decide(request, before))
        self._db.execute("INSERT INTO answers VALUES (?, ?, ?)", (key, repr(request), movement.id))
        return movement

    def _append(self, payment_id: str, entry: Entry) -> Movement:
        at = datetime.now(UTC).isoformat(timespec="milliseconds")
        row = payment_id, at, *entry
        number = self._db.execute("INSERT INTO movements VALUES (NULL, ?, ?, ?, ?, ?, ?, ?)", row).lastrowid
        assert number
        return Movement(number, payment_id, at, entry)

    def _read(self, condition: str, value: int | str) -> list[Movement]:
        rows = self._db.execute(f"SELECT * FROM movements WHERE {condition} ORDER BY id", (value,))
        return [Movement(number, payment_id, at, Entry(*entry)) for number, payment_id, at, *entry in rows]

    def _totals(self) -> dict[str, dict[str, int]]:
        totals: dict[str, dict[str, int]] = {}
        sums = "SELECT currency, kind, sum(amount) FROM movements GROUP BY currency, kind"
        for currency, kind, amount in self._db.execute(sums):
            nothing = dict.fromkeys(("authorized", "declined", "captured", "voided", "refunded"), 0)
            totals.setdefault(currency, nothing)[kind] = amount
        return totals
