"""Effects of a consumer in the database, counted so that a missing or repeated one shows."""

from collections.abc import Awaitable, Sequence

from shared.messaging.incoming import Incoming
from shared.service import Runtime
from shared.store.database import Connection
from tests.integration.shared.loops import until
from tests.integration.shared.tallies import add, handled, relayed

Effects = dict[tuple[str, int], int]


async def note(connection: Connection, messages: Sequence[Incoming]) -> None:
    """Writes a row for each message, so that a message applied twice shows."""
    await connection.executemany(
        "INSERT INTO effects VALUES ($1, $2, $3)", [(m.stream_id, m.version, m.data.amount) for m in messages]
    )


async def make_effects(runtime: Runtime) -> None:
    await runtime.pool.execute("CREATE TABLE effects (stream_id text, version int, amount bigint)")


async def effects(runtime: Runtime) -> Effects:
    rows = await runtime.pool.fetch("SELECT stream_id, version, count(*) FROM effects GROUP BY stream_id, version")
    return {(row[0], row[1]): row[2] for row in rows}


async def reached(runtime: Runtime) -> int:
    """The number of handled messages, over all partitions."""
    return int(await runtime.pool.fetchval("SELECT coalesce(sum(next_offset), 0) FROM offsets"))


async def fill(runtime: Runtime, streams: int = 12, events: int = 3) -> Effects:
    """Puts events into the topic, and gives the effects that they should have."""
    for n in range(streams):
        await handled(runtime, f"tally:{n}", add(*range(1, events + 1)))
    await relayed(runtime)
    return {(f"tally:{n}", version): 1 for n in range(streams) for version in range(1, events + 1)}


def until_reached(runtime: Runtime, messages: int) -> Awaitable[bool]:
    async def arrived() -> bool:
        return await reached(runtime) == messages

    return until(arrived)
