"""The moment in which a view that was built beside takes the place of the live one: one transaction, both stand still.

The live consumer moves its offsets by compare-and-set, and before it touches the table. Who holds those rows locked
holds the consumer; and when they are given back with other offsets, what it has in hand is void (`Fenced`).
"""

import asyncio
from collections.abc import Mapping

import asyncpg
from aiokafka import AIOKafkaConsumer, TopicPartition

from services.replay.beside import SET_OFFSET, Beside, offsets_of
from services.replay.catching_up import Applied, catch_up
from services.replay.compared import Comparison, compare_suspects
from services.replay.targets import Target
from shared.crashpoints import crashpoint
from shared.errors import OperatorError

TRIES, PAUSE_SECONDS = 20, 0.25
# A reader that does not let go of the table must not make all others wait behind us.
PATIENCE = "SET LOCAL lock_timeout = '2s'; SET LOCAL synchronous_commit = on"


async def swap(place: Beside, kafka: AIOKafkaConsumer, into: str) -> tuple[Comparison, Applied]:
    """`into` is the schema that keeps the replaced one. How they differed, and what was applied on the last bit."""
    for attempt in range(TRIES):
        try:
            async with place.connection.transaction():
                await place.connection.execute(PATIENCE)
                return await _swap(place, kafka, into)
        except (asyncpg.LockNotAvailableError, asyncpg.DeadlockDetectedError):
            await asyncio.sleep(PAUSE_SECONDS * attempt)
    raise OperatorError(
        f"{place.live}.{place.table} is in use by a long transaction, and could not be swapped.",
        "It stays as it is. Run this again: it goes on where it was.",
    )


async def _swap(place: Beside, kafka: AIOKafkaConsumer, into: str) -> tuple[Comparison, Applied]:
    target = place.target
    live = await offsets_of(place.connection, place.live, target.name, locked=True)
    # Not behind the live one, or a reader would see an order go back in time.
    built = await place.offsets()
    goal = {partition: max(offset, live.get(partition, 0)) for partition, offset in built.items()}
    applied = await catch_up(place, kafka, goal)
    comparison = await compare_suspects(place)
    await _tell_of_changes(place)
    await _exchange_tables(place, into)
    # Swapped, not committed: after a death here the live view is what it was, and the other is beside it.
    crashpoint("swapped, not committed")
    await _exchange_offsets(place, into, live, goal)
    return comparison, applied


async def _tell_of_changes(place: Beside) -> None:
    """Whoever remembers rows must hear of those that change by the swap."""
    view = place.target.view
    if view.notify:
        shown = [name for name in view.names if name != "version"]
        live, built = (", ".join(f"{side}.{name}" for name in shown) for side in ("live", "built"))
        await place.connection.execute(
            f'SELECT pg_notify($1, {view.key}) FROM "{place.live}"."{place.table}" live'
            f' FULL JOIN "{place.schema}"."{place.table}" built USING ({view.key})'
            f" WHERE ({live}) IS DISTINCT FROM ({built})",
            view.notify,
        )


async def _exchange_tables(place: Beside, into: str) -> None:
    """By way of a third place: names of indexes are unique within a schema, and both tables have the same."""
    leaving = f"{place.live}__leaving"
    for statement in (
        f'CREATE SCHEMA "{leaving}"',
        f'ALTER TABLE "{place.live}"."{place.table}" SET SCHEMA "{leaving}"',
        f'ALTER TABLE "{place.schema}"."{place.table}" SET SCHEMA "{place.live}"',
        f'CREATE SCHEMA IF NOT EXISTS "{into}"',
        f'DROP TABLE IF EXISTS "{into}"."{place.table}"',
        f'ALTER TABLE "{leaving}"."{place.table}" SET SCHEMA "{into}"',
        f'DROP SCHEMA "{leaving}"',
    ):
        await place.connection.execute(statement)


async def _exchange_offsets(
    place: Beside, into: str, live: Mapping[TopicPartition, int], built: Mapping[TopicPartition, int]
) -> None:
    connection = place.connection
    await place.forget()
    await _set_offsets(place, place.live, built)
    await connection.execute(f'CREATE TABLE IF NOT EXISTS "{into}".offsets (LIKE "{place.live}".offsets INCLUDING ALL)')
    await connection.execute(f'DELETE FROM "{into}".offsets WHERE consumer = $1', place.target.name)
    await _set_offsets(place, into, dict.fromkeys(built, 0) | dict(live))


async def _set_offsets(place: Beside, schema: str, offsets: Mapping[TopicPartition, int]) -> None:
    statement = SET_OFFSET.replace("INTO offsets", f'INTO "{schema}".offsets')
    target: Target = place.target
    await place.connection.executemany(statement, [(target.name, *at, offset) for at, offset in offsets.items()])
