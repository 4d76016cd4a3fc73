"""Compiled queries: values are passed by name and reach the database in the order of the statement."""

import asyncio
from typing import Any

import pytest
from sqlalchemy import Integer, bindparam
from sqlmodel import Field, SQLModel, col, select

from shared.store.queries import CompiledQuery


class Tally(SQLModel, table=True):
    __tablename__ = "test_queries_tallies"

    name: str = Field(primary_key=True)
    count: int
    is_open: bool


FULL = CompiledQuery(
    select(Tally)
    .where(col(Tally.count) > bindparam("least"), col(Tally.name) == bindparam("name"))
    .limit(bindparam("limit", type_=Integer))
)


class Pool:
    """Notes what it is asked instead of asking a database."""

    def __init__(self) -> None:
        self.asked: list[tuple[Any, ...]] = []

    async def fetch(self, *asked: Any) -> list[Any]:
        self.asked.append(asked)
        return []


def test_values_arrive_in_the_order_of_the_statement_however_they_are_named() -> None:
    pool: Any = Pool()
    asyncio.run(FULL.rows(pool, limit=10, name="a", least=3))
    [(sql, *arguments)] = pool.asked
    assert arguments == [3, "a", 10]
    assert [sql.index(f"${n}") for n in (1, 2, 3)] == sorted(sql.index(f"${n}") for n in (1, 2, 3))


def test_a_value_in_the_statement_itself_need_not_be_passed() -> None:
    query = CompiledQuery(select(Tally).where(col(Tally.name) == "a", col(Tally.count) > bindparam("least")))
    assert query.arguments({"least": 3}) == ["a", 3]


def test_a_missing_value_is_an_error_before_the_database_is_asked() -> None:
    with pytest.raises(KeyError, match="least"):
        FULL.arguments({"name": "a", "limit": 10})
