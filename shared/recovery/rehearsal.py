"""What a retry of a dead letter would do, found out by doing it in a transaction that is rolled back."""

from dataclasses import dataclass, field
from typing import Any

import orjson

from shared.consumer import TRANSIENT, Consumer, Incoming
from shared.database import Connection
from shared.deadletters import Letter, reason
from shared.errors import OperatorError
from shared.service import Runtime
from shared.settling import FailedAgain, NoConsumer, prepare
from shared.tables import KERNEL

BY_US = "xmin = pg_current_xact_id()::xid"
VIEWS = """
SELECT tablename FROM pg_tables
WHERE schemaname = current_schema() AND tablename <> 'alembic_version' AND tablename <> ALL($1::text[])
ORDER BY tablename
"""


@dataclass
class Rehearsal:
    error: str = ""
    """Why it would fail again, if it would."""
    commands: list[tuple[str, Any]] = field(default_factory=list)
    """Of a reaction: the streams, and what would be asked of each."""
    events: list[dict[str, Any]] = field(default_factory=list)
    """That would be appended: stream, version and type."""
    rows: dict[str, list[dict[str, Any]]] = field(default_factory=dict)
    """By table, those that would be written, as they would be."""


async def rehearse(runtime: Runtime, letter: Letter) -> Rehearsal:
    try:
        consumer, reaction, record = await prepare(runtime, letter)
    except (NoConsumer, FailedAgain) as error:
        return Rehearsal(error.message)
    rehearsal = Rehearsal()
    try:
        message = await consumer.incoming(record)
        if reaction:
            rehearsal.commands = list(reaction.react(message))
        async with runtime.pool.acquire() as connection:
            await _apply_and_undo(connection, consumer, message, rehearsal)
    except TRANSIENT as error:
        raise OperatorError(
            f"What a retry would do cannot be found out: {reason(error)}", "See: till status"
        ) from error
    except Exception as error:  # whatever it is, it is what a retry would meet
        rehearsal.error = reason(error)
    return rehearsal


async def _apply_and_undo(connection: Connection, consumer: Consumer, message: Incoming, rehearsal: Rehearsal) -> None:
    transaction = connection.transaction()
    await transaction.start()
    try:
        last = await connection.fetchval("SELECT coalesce(max(position), 0) FROM events")
        await consumer.apply_again(connection, message)
        appended = await connection.fetch(
            f"SELECT stream_id, version, type FROM events WHERE position > $1 AND {BY_US} ORDER BY position", last
        )
        rehearsal.events = [dict(row) for row in appended]
        for (table,) in await connection.fetch(VIEWS, list(KERNEL.tables)):
            if rows := await connection.fetch(f'SELECT to_jsonb(t) FROM "{table}" t WHERE t.{BY_US}'):
                rehearsal.rows[table] = [orjson.loads(row[0]) for row in rows]
    finally:
        await transaction.rollback()
