"""Queries of read models: written with SQLModel against the declared tables, compiled once, and run by asyncpg.

A column that the table does not have is an error when the module is imported, not when a request comes. Compiling
happens then too, so that a request pays no more than for SQL written by hand.
"""

from typing import Any

import asyncpg
from sqlalchemy import Select
from sqlalchemy.dialects.postgresql.asyncpg import PGDialect_asyncpg

from shared.store.database import Pool


class CompiledQuery:
    """A SELECT. The values of its parameters (`bindparam`) are passed by name."""

    def __init__(self, statement: Select[Any]) -> None:
        compiled = statement.compile(dialect=PGDialect_asyncpg())  # type: ignore[no-untyped-call]
        self.sql = compiled.string
        self._parameters = list(compiled.positiontup or ())
        self._literals = {name: bound.value for name, bound in compiled.binds.items() if not bound.required}

    async def rows(self, pool: Pool, **values: Any) -> list[asyncpg.Record]:
        return await pool.fetch(self.sql, *self.arguments(values))

    async def row(self, pool: Pool, **values: Any) -> asyncpg.Record | None:
        """Returns the first row, or None if there is none."""
        return await pool.fetchrow(self.sql, *self.arguments(values))

    async def value(self, pool: Pool, **values: Any) -> Any:
        """Returns the first column of the first row, or None if there is none."""
        return await pool.fetchval(self.sql, *self.arguments(values))

    def arguments(self, values: dict[str, Any]) -> list[Any]:
        """Puts the values into the order in which the compiled statement numbers them."""
        given = self._literals | values
        return [given[name] for name in self._parameters]
