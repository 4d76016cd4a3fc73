"""Messages that become dead letters, for tests of what an operator can do about them."""

from collections.abc import Sequence

from shared.messaging.incoming import Incoming
from shared.recovery.dead_letter_queue import read_letters
from shared.recovery.dead_letters import Letter
from shared.service import Runtime
from shared.store.database import Connection
from tests.integration.shared.effects import make_effects, note, until_reached
from tests.integration.shared.loops import running
from tests.integration.shared.tallies import Tallies, add, handled, relayed

OLGA = "olga"
"""The operator."""
POISON = 666


async def note_but_choke(connection: Connection, messages: Sequence[Incoming]) -> None:
    await note(connection, messages)
    if any(message.data.amount == POISON for message in messages):
        raise RuntimeError(f"cannot apply {POISON}")


async def effects(runtime: Runtime) -> list[tuple[str, int]]:
    rows = await runtime.pool.fetch("SELECT stream_id, amount FROM effects ORDER BY stream_id, version, amount")
    return [(row[0], row[1]) for row in rows]


async def consumed(runtime: Runtime, messages: int) -> None:
    """Runs the consumer until it has handled this number of messages, and publishes what it wrote."""
    async with running(runtime.consumers[0].run()):
        await until_reached(runtime, messages)
    await relayed(runtime)


async def die(tallies: Tallies, *streams: str) -> list[Letter]:
    """Turns a message of each stream into a dead letter."""
    async with tallies.following(note_but_choke).opened() as runtime:
        await make_effects(runtime)
        for stream_id in streams:
            await handled(runtime, stream_id, add(POISON))
        await relayed(runtime)
        await consumed(runtime, len(streams))
    return await all_letters(tallies)


async def all_letters(tallies: Tallies) -> list[Letter]:
    return [letter async for letter in read_letters(tallies.settings, tallies.service.name)]


def repaired(tallies: Tallies) -> Tallies:
    return tallies.following(note)


async def is_blocked(runtime: Runtime) -> bool:
    """Tells whether a transaction of the service waits for another one."""
    return bool(
        await runtime.pool.fetchval(
            "SELECT EXISTS (SELECT FROM pg_stat_activity WHERE application_name = $1 AND wait_event_type = 'Lock')",
            f"till {runtime.service.name}",
        )
    )
