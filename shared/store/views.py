"""Read models: rows of a table, each folded from the events of one key. A service declares columns and fold only."""

from collections.abc import Callable, Mapping, Sequence
from copy import copy
from operator import attrgetter
from types import new_class
from typing import Any, Generic, Self, TypeVar

from sqlalchemy import Index, MetaData, Table
from sqlalchemy.dialects import postgresql
from sqlmodel import SQLModel

from shared.messaging.incoming import Incoming
from shared.store.database import Connection

Row = TypeVar("Row", bound=SQLModel)


class RowView(Generic[Row]):
    """A table whose columns are the fields of `row`, and the fold that keeps it up to date.

    `change(row, message)` gives the row after the message, or None if there is nothing to show. The field `version` is
    the version of the stream that a row shows; it makes applying a message twice harmless (an idempotent consumer).
    """

    def __init__(
        self,
        row: type[Row],
        table: str,
        key_of: Callable[[Incoming], str],
        change: Callable[[Row | None, Incoming], Row | None],
        indexes: Sequence[Index] = (),
        notify: str = "",
    ) -> None:
        """`notify` is a NOTIFY channel that gets the key of every row that changes."""
        self.row = row
        self.table = table
        self.key_of = key_of
        self.change = change
        self.notify = notify
        self.model = _table_model(row, table, indexes)
        """The SQLModel table class, for queries (`queries.py`)."""
        self.declaration: Table = self.model.__table__  # type: ignore[attr-defined]
        """The table as migrations are compared with it."""
        dialect = postgresql.dialect()  # type: ignore[no-untyped-call]
        declared = self.declaration.columns
        arrays = [f"${n}::{column.type.compile(dialect)}[]" for n, column in enumerate(declared, 1)]
        self.names = [column.name for column in declared]
        self.columns = ", ".join(self.names)
        """The columns for a SELECT."""
        self.values = attrgetter(*self.names)
        """Gives the values of a row in the order of `names`."""
        self.key = next(iter(self.declaration.primary_key)).name
        self._select = f"SELECT {self.columns} FROM {table} WHERE {self.key} = ANY($1::text[])"
        self._upsert = (
            f"INSERT INTO {table} ({self.columns}) SELECT * FROM unnest({', '.join(arrays)})"
            f" ON CONFLICT ({self.key}) DO UPDATE SET "
            + ", ".join(f"{name} = excluded.{name}" for name in self.names if name != self.key)
        )

    def without_notify(self) -> Self:
        """Returns a copy that sends no NOTIFY, for a table that nobody reads yet."""
        same = copy(self)
        same.notify = ""
        return same

    async def apply(self, connection: Connection, messages: Sequence[Incoming]) -> None:
        """Folds the messages into the rows of their keys, in the caller's transaction. Skips those folded before."""
        keys = {self.key_of(message) for message in messages}
        found = await connection.fetch(self._select, list(keys))
        rows: dict[str, Row | None] = {row[self.key]: self.row(**row) for row in found}
        changed: set[str] = set()
        for message in messages:
            key = self.key_of(message)
            row = rows.get(key)
            if row is not None and message.version <= row.version:  # type: ignore[attr-defined]
                continue
            row = self.change(row, message)
            if row is not None:
                row.version = message.version
                rows[key] = row
                changed.add(key)
        if not changed:
            return
        columns = list(zip(*(self.values(rows[key]) for key in sorted(changed)), strict=True))
        await connection.execute(self._upsert, *columns)
        if self.notify:
            before = {row[self.key]: self._visible(dict(row)) for row in found}
            altered = [key for key in sorted(changed) if before.get(key) != self._visible(vars(rows[key]))]
            await connection.execute("SELECT pg_notify($1, key) FROM unnest($2::text[]) key", self.notify, altered)

    def _visible(self, row: Mapping[str, Any]) -> list[Any]:
        """Returns all columns but the version, which changes with every event."""
        return [row[name] for name in self.names if name != "version"]


def _table_model(row: type[Row], table: str, indexes: Sequence[Index]) -> type[Row]:
    """Makes the SQLModel table class of a row class.

    Rows themselves are instances of the plain class: SQLAlchemy instruments each attribute of a table class, and with
    that folding is eight times slower.
    """
    body = {
        "__module__": row.__module__,
        "__tablename__": table,
        "__table_args__": tuple(indexes),
        "metadata": MetaData(),
    }
    return new_class(f"{row.__name__}Table", (row,), {"table": True}, lambda namespace: namespace.update(body))
