"""What a consumer is for: effects in the database, counted so that one that is missing or had twice shows."""

from collections.abc import Awaitable, Sequence

from shared.consumer import Incoming
from shared.database import Connection
from shared.service import Runtime
from tests.integration.kit import add, handled, relayed, until

Effects = dict[tuple[str, int], int]


async def note(connection: Connection, messages: Sequence[Incoming]) -> None:
    """An effect that shows when it is had twice: a row for each time."""
    await connection.executemany(
        "INSERT INTO effects VALUES ($1, $2, $3)", [(m.stream_id, m.version, m.data.amount) for m in messages]
    )


async def make_effects(runtime: Runtime) -> None:
    await runtime.pool.execute("CREATE TABLE effects (stream_id text, version int, amount bigint)")


async def effects(runtime: Runtime) -> Effects:
    rows = await runtime.pool.fetch("SELECT stream_id, version, count(*) FROM effects GROUP BY stream_id, version")
    return {(row[0], row[1]): row[2] for row in rows}


async def reached(runtime: Runtime) -> int:
    """Messages done with, over all partitions."""
    return int(await runtime.pool.fetchval("SELECT coalesce(sum(next_offset), 0) FROM offsets"))


async def fill(runtime: Runtime, streams: int = 12, events: int = 3) -> Effects:
    """Put events into the topic; the effects that they should have."""
    for n in range(streams):
        await handled(runtime, f"tally:{n}", add(*range(1, events + 1)))
    await relayed(runtime)
    return {(f"tally:{n}", version): 1 for n in range(streams) for version in range(1, events + 1)}


def until_reached(runtime: Runtime, messages: int) -> Awaitable[bool]:
    async def arrived() -> bool:
        return await reached(runtime) == messages

    return until(arrived)
