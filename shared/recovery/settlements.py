"""Settlements: the table of dead letters that were retried or dropped, each of them once.

A settled letter stays in its topic; this table is what takes it off the list.
"""

from dataclasses import dataclass
from datetime import datetime
from typing import Literal

import asyncpg

from shared.envelope import now
from shared.recovery.dead_letters import Death, Letter
from shared.store.database import Connection, Pool

How = Literal["retried", "dropped"]

INSERT = """
INSERT INTO settled_letters (consumer, topic, partition, "offset", died, how, why, by, time)
VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9)
ON CONFLICT DO NOTHING
"""
SELECT_ALL = 'SELECT consumer, topic, partition, "offset", died, how, why, by, time FROM settled_letters'
SELECT_ONE = f'{SELECT_ALL} WHERE (consumer, topic, partition, "offset", died) = ($1, $2, $3, $4, $5)'


@dataclass(frozen=True)
class Settlement:
    """How, why, by whom and when a dead letter was settled."""

    how: How
    why: str
    """The operator's reason for dropping it; empty after a retry."""
    by: str
    time: datetime


async def read_settlements(pool: Pool) -> dict[Death, Settlement]:
    try:
        rows = await pool.fetch(SELECT_ALL)
    except asyncpg.UndefinedTableError:
        return {}  # the database is from before this table, and no process has migrated it yet
    return {Death(*row[:5]): Settlement(*row[5:]) for row in rows}


async def find_settlement(pool: Pool, letter: Letter) -> Settlement | None:
    row = await pool.fetchrow(SELECT_ONE, *letter.death)
    return Settlement(*row[5:]) if row else None


async def settle(connection: Connection, letter: Letter, how: How, why: str, by: str) -> bool:
    """Settles the letter in the caller's transaction; returns False if it is settled already.

    A second caller waits here until the first one's transaction has ended.
    """
    return await connection.execute(INSERT, *letter.death, how, why, by, now()) == "INSERT 0 1"


async def drop(pool: Pool, letter: Letter, why: str, by: str) -> Settlement | None:
    """Settles the letter without a retry; if it was settled before, returns that settlement instead."""
    async with pool.acquire() as connection:
        dropped = await settle(connection, letter, "dropped", why, by)
    return None if dropped else await find_settlement(pool, letter)
