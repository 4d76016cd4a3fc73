"""Messages that become dead letters, and an effect that shows when it is had twice."""

from collections.abc import Sequence

from shared.consumer import Incoming
from shared.database import Connection
from shared.deadletters import Letter, letters
from shared.service import Runtime
from tests.integration.kit import Tallies, add, handled, relayed, running, until

OLGA = "olga"


POISON = 666


async def note(connection: Connection, messages: Sequence[Incoming]) -> None:
    """An effect that shows when it is had twice: a row for each time."""
    await connection.executemany(
        "INSERT INTO effects VALUES ($1, $2, $3)", [(m.stream_id, m.version, m.data.amount) for m in messages]
    )


async def note_but_choke(connection: Connection, messages: Sequence[Incoming]) -> None:
    await note(connection, messages)
    if any(message.data.amount == POISON for message in messages):
        raise RuntimeError(f"cannot apply {POISON}")


async def effects(runtime: Runtime) -> list[tuple[str, int]]:
    rows = await runtime.pool.fetch("SELECT stream_id, amount FROM effects ORDER BY stream_id, version, amount")
    return [(row[0], row[1]) for row in rows]


async def consumed(runtime: Runtime, messages: int) -> None:
    """The consumer is done with so many, and what it wrote is in Kafka."""

    async def arrived() -> bool:
        reached = await runtime.pool.fetchval("SELECT coalesce(sum(next_offset), 0) FROM offsets")
        return bool(reached == messages)

    async with running(runtime.consumers[0].run()):
        await until(arrived)
    await relayed(runtime)


async def die(tallies: Tallies, *streams: str) -> list[Letter]:
    """A message of each stream becomes a dead letter."""
    async with tallies.following(note_but_choke).opened() as runtime:
        await runtime.pool.execute("CREATE TABLE effects (stream_id text, version int, amount bigint)")
        for stream_id in streams:
            await handled(runtime, stream_id, add(POISON))
        await relayed(runtime)
        await consumed(runtime, len(streams))
    return await all_letters(tallies)


async def all_letters(tallies: Tallies) -> list[Letter]:
    return [letter async for letter in letters(tallies.settings, tallies.service.name)]


def mended(tallies: Tallies) -> Tallies:
    return tallies.following(note)


async def is_blocked(runtime: Runtime) -> bool:
    """Some transaction of the service waits for another."""
    return bool(
        await runtime.pool.fetchval(
            "SELECT EXISTS (SELECT FROM pg_stat_activity WHERE application_name = $1 AND wait_event_type = 'Lock')",
            f"till {runtime.service.name}",
        )
    )
