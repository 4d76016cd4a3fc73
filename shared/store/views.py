"""Read models: rows of a table, each folded from the events of one key. The fold is yours, the SQL is here."""

from collections.abc import Callable, Mapping, Sequence
from copy import copy
from operator import attrgetter
from typing import Any, Generic, Self, TypeVar

from sqlalchemy import Table
from sqlalchemy.dialects import postgresql
from sqlmodel import SQLModel

from shared.consumer import Incoming
from shared.database import Connection

Row = TypeVar("Row", bound=SQLModel)


class RowView(Generic[Row]):
    """`change(row, message)` gives the row as it is after the message; None where there is nothing to show.

    The table has a column `version`: that of the stream the row shows. By it a message that comes twice is known.
    Rows are no instances of the table's class: SQLAlchemy watches each of their attributes, at eight times the price.
    """

    def __init__(
        self,
        row: type[Row],
        table: type[SQLModel],
        key_of: Callable[[Incoming], str],
        change: Callable[[Row | None, Incoming], Row | None],
        notify: str = "",
    ) -> None:
        self.row = row
        self.key_of = key_of
        self.change = change
        self.notify = notify
        """The channel on which it is told which keys have changed, if any."""
        described: Table = table.__table__  # type: ignore[attr-defined]
        dialect = postgresql.dialect()  # type: ignore[no-untyped-call]
        names = [column.name for column in described.columns]
        arrays = [f"${n}::{c.type.compile(dialect)}[]" for n, c in enumerate(described.columns, 1)]
        self.table = described.name
        self.names = names
        self.values = attrgetter(*names)
        """Of a row, in the order of `names`."""
        self.key = next(iter(described.primary_key)).name
        self._select = f"SELECT {', '.join(names)} FROM {described.name} WHERE {self.key} = ANY($1::text[])"
        self._upsert = (
            f"INSERT INTO {described.name} ({', '.join(names)}) SELECT * FROM unnest({', '.join(arrays)})"
            f" ON CONFLICT ({self.key}) DO UPDATE SET "
            + ", ".join(f"{name} = excluded.{name}" for name in names if name != self.key)
        )

    def unheard(self) -> Self:
        """The same, and nobody is told of changes: for a table that nobody reads yet."""
        same = copy(self)
        same.notify = ""
        return same

    async def apply(self, connection: Connection, messages: Sequence[Incoming]) -> None:
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
            before = {row[self.key]: self._shown(dict(row)) for row in found}
            news = [key for key in sorted(changed) if before.get(key) != self._shown(vars(rows[key]))]
            await connection.execute("SELECT pg_notify($1, key) FROM unnest($2::text[]) key", self.notify, news)

    def _shown(self, row: Mapping[str, Any]) -> list[Any]:
        """All but the version: who is told of changes need not hear that nothing else has changed."""
        return [row[name] for name in self.names if name != "version"]
