"""Finds out what a retry of a dead letter would do, by doing it in a transaction that is rolled back."""

from dataclasses import dataclass, field
from typing import Any

import orjson

from shared.envelope import millis, now
from shared.errors import OperatorError
from shared.messaging.consumer import TRANSIENT, Consumer
from shared.messaging.incoming import Incoming
from shared.recovery.dead_letters import Letter, reason
from shared.recovery.retry import FailedAgain, NoConsumer, prepare
from shared.service import Runtime
from shared.store.database import Connection
from shared.store.tables import KERNEL

WRITTEN_HERE = "xmin = pg_current_xact_id()::xid"
VIEWS = """
SELECT tablename FROM pg_tables
WHERE schemaname = current_schema() AND tablename <> 'alembic_version' AND tablename <> ALL($1::text[])
ORDER BY tablename
"""


@dataclass
class Rehearsal:
    """The result of a rehearsal: what a retry would write, or why it would fail."""

    error: str = ""
    """Why it would fail again; empty if it would succeed."""
    commands: list[tuple[str, Any]] = field(default_factory=list)
    """The commands of a reaction, each with its stream."""
    events: list[dict[str, Any]] = field(default_factory=list)
    """The events that would be appended: stream, version and type."""
    rows: dict[str, list[dict[str, Any]]] = field(default_factory=dict)
    """The rows that would be written, by table."""


async def rehearse(runtime: Runtime, letter: Letter) -> Rehearsal:
    try:
        consumer, reaction, record = await prepare(runtime, letter)
    except (NoConsumer, FailedAgain) as error:
        return Rehearsal(error.message)
    rehearsal = Rehearsal()
    try:
        message = await consumer.decode(record)
        if reaction:
            rehearsal.commands = list(reaction.react(message, millis(now())))
        async with runtime.pool.acquire() as connection:
            await _apply_and_roll_back(connection, consumer, message, rehearsal)
    except TRANSIENT as error:
        raise OperatorError(f"The retry cannot be rehearsed: {reason(error)}", "See: till status") from error
    except Exception as error:  # a retry would fail in the same way
        rehearsal.error = reason(error)
    return rehearsal


async def _apply_and_roll_back(
    connection: Connection, consumer: Consumer, message: Incoming, rehearsal: Rehearsal
) -> None:
    transaction = connection.transaction()
    await transaction.start()
    try:
        last = await connection.fetchval("SELECT coalesce(max(position), 0) FROM events")
        await consumer.apply_dead_letter(connection, message)
        appended = await connection.fetch(
            f"SELECT stream_id, version, type FROM events WHERE position > $1 AND {WRITTEN_HERE} ORDER BY position",
            last,
        )
        rehearsal.events = [dict(row) for row in appended]
        for (table,) in await connection.fetch(VIEWS, list(KERNEL.tables)):
            if rows := await connection.fetch(f'SELECT to_jsonb(t) FROM "{table}" t WHERE t.{WRITTEN_HERE}'):
                rehearsal.rows[table] = [orjson.loads(row[0]) for row in rows]
    finally:
        await transaction.rollback()
