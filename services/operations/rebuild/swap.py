"""Swaps a live view with its shadow in one transaction, during which neither of them changes.

The live consumer moves its offsets by compare-and-set before it writes to the table. Locking its offset rows therefore
stops the consumer. They are released with other offsets, so the batch that it holds is refused: it is fenced.
"""

import asyncio
from collections.abc import Mapping

import asyncpg
from aiokafka import TopicPartition

from services.operations.rebuild.catch_up import Applied, catch_up
from services.operations.rebuild.comparison import ViewComparison, compare_suspects
from services.operations.rebuild.shadow_view import SET_OFFSET, ShadowView, read_offsets
from shared.errors import OperatorError
from shared.messaging.topic_reader import TopicReader
from shared.recovery.crash_points import crashpoint

TRIES, PAUSE_SECONDS = 20, 0.25
# If a long reader holds the table, give up soon: all other readers queue behind our lock request.
LOCK_SETTINGS = "SET LOCAL lock_timeout = '2s'; SET LOCAL synchronous_commit = on"


async def swap(shadow: ShadowView, topic: TopicReader, into: str) -> tuple[ViewComparison, Applied]:
    """Swaps the tables and their offsets; the replaced view goes into schema `into`.

    Returns how the two differed, and what was applied to the shadow last.
    """
    for attempt in range(TRIES):
        try:
            async with shadow.connection.transaction():
                await shadow.connection.execute(LOCK_SETTINGS)
                return await _swap(shadow, topic, into)
        except (asyncpg.LockNotAvailableError, asyncpg.DeadlockDetectedError):
            await asyncio.sleep(PAUSE_SECONDS * attempt)
    raise OperatorError(
        f"{shadow.live}.{shadow.table} is in use by a long transaction, and could not be swapped.",
        "The live view is unchanged. Run it again; it continues where it stopped.",
    )


async def _swap(shadow: ShadowView, topic: TopicReader, into: str) -> tuple[ViewComparison, Applied]:
    target = shadow.target
    live = await read_offsets(shadow.connection, shadow.live, target.name, lock=True)
    # The shadow must not be behind the live view, or a reader would see an order go back in time.
    built = await shadow.offsets()
    goal = {partition: max(offset, live.get(partition, 0)) for partition, offset in built.items()}
    applied = await catch_up(shadow, topic, goal)
    comparison = await compare_suspects(shadow)
    await _notify_changes(shadow)
    await _exchange_tables(shadow, into)
    # Swapped, not committed: after a crash here the live view is unchanged, and the shadow is still next to it.
    crashpoint("swapped, not committed")
    await _exchange_offsets(shadow, into, live, goal)
    return comparison, applied


async def _notify_changes(shadow: ShadowView) -> None:
    """Notifies processes that cache rows of the rows that the swap changes."""
    view = shadow.target.view
    if view.notify:
        shown = [name for name in view.names if name != "version"]
        live, built = (", ".join(f"{side}.{name}" for name in shown) for side in ("live", "built"))
        await shadow.connection.execute(
            f'SELECT pg_notify($1, {view.key}) FROM "{shadow.live}"."{shadow.table}" live'
            f' FULL JOIN "{shadow.schema}"."{shadow.table}" built USING ({view.key})'
            f" WHERE ({live}) IS DISTINCT FROM ({built})",
            view.notify,
        )


async def _exchange_tables(shadow: ShadowView, into: str) -> None:
    """Exchanges the tables by way of a third schema: both have indexes of the same names, unique within a schema."""
    leaving = f"{shadow.live}__leaving"
    for statement in (
        f'CREATE SCHEMA "{leaving}"',
        f'ALTER TABLE "{shadow.live}"."{shadow.table}" SET SCHEMA "{leaving}"',
        f'ALTER TABLE "{shadow.schema}"."{shadow.table}" SET SCHEMA "{shadow.live}"',
        f'CREATE SCHEMA IF NOT EXISTS "{into}"',
        f'DROP TABLE IF EXISTS "{into}"."{shadow.table}"',
        f'ALTER TABLE "{leaving}"."{shadow.table}" SET SCHEMA "{into}"',
        f'DROP SCHEMA "{leaving}"',
    ):
        await shadow.connection.execute(statement)


async def _exchange_offsets(
    shadow: ShadowView, into: str, live: Mapping[TopicPartition, int], built: Mapping[TopicPartition, int]
) -> None:
    connection = shadow.connection
    await shadow.forget_progress()
    await _set_offsets(shadow, shadow.live, built)
    offsets = f'"{into}".offsets'
    await connection.execute(f'CREATE TABLE IF NOT EXISTS {offsets} (LIKE "{shadow.live}".offsets INCLUDING ALL)')
    await connection.execute(f"DELETE FROM {offsets} WHERE consumer = $1", shadow.target.name)
    await _set_offsets(shadow, into, dict.fromkeys(built, 0) | dict(live))


async def _set_offsets(shadow: ShadowView, schema: str, offsets: Mapping[TopicPartition, int]) -> None:
    statement = SET_OFFSET.replace("INTO offsets", f'INTO "{schema}".offsets')
    rows = [(shadow.target.name, *partition, offset) for partition, offset in offsets.items()]
    await shadow.connection.executemany(statement, rows)
