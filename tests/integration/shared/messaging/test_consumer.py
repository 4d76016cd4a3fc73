"""The idempotent consumer: every message has its effect once, whichever process dies, pauses or comes back."""

import asyncio
from collections.abc import Sequence
from typing import Any

import asyncpg
import pytest
from sqlalchemy.schema import CreateTable

from shared.messaging.consumer import CONFLICT_ATTEMPTS, Consumer
from shared.messaging.incoming import Incoming
from shared.schemas.decoder import Decoder
from shared.service import Runtime
from shared.store.database import Connection
from shared.store.event_store import Conflict
from tests.integration.shared.effects import Effects, effects, fill, make_effects, note, reached, until_reached
from tests.integration.shared.loops import running, stop, until
from tests.integration.shared.tallies import Added, Tallies, add, handled, relayed
from tests.integration.shared.tally_view import VIEW
from tests.integration.shared.topics import create_topics, delete_topics, send

pytestmark = pytest.mark.anyio


async def test_a_consumer_that_dies_before_its_commit_has_no_effect_and_the_next_one_has_it_once(
    tallies: Tallies,
) -> None:
    handling = asyncio.Event()

    async def note_and_hang(connection: Connection, messages: Sequence[Incoming]) -> None:
        await note(connection, messages)
        handling.set()
        await asyncio.Event().wait()

    async with tallies.following(note_and_hang).opened() as first, tallies.following(note).opened() as second:
        await make_effects(first)
        expected = await fill(first)
        dying = asyncio.create_task(first.consumers[0].run())
        await asyncio.wait_for(handling.wait(), 20)
        await stop(dying)
        assert (await effects(first), await reached(first)) == ({}, 0)
        async with running(second.consumers[0].run()):
            await until_reached(second, len(expected))
        assert await effects(second) == expected


async def test_a_restarted_consumer_continues_at_its_stored_offset(tallies: Tallies) -> None:
    async with tallies.following(note).opened() as runtime:
        await make_effects(runtime)
        for round_ in range(1, 4):
            for n in range(10):
                await handled(runtime, f"tally:{n}", add(1))
            await relayed(runtime)
            async with running(runtime.consumers[0].run()):
                await until_reached(runtime, 10 * round_)
        assert await effects(runtime) == {(f"tally:{n}", version): 1 for n in range(10) for version in (1, 2, 3)}


async def test_a_consumer_receives_decoded_events_with_their_metadata(tallies: Tallies) -> None:
    seen: list[Incoming] = []

    async def look(_connection: Connection, messages: Sequence[Incoming]) -> None:
        seen.extend(messages)

    async with tallies.following(look).opened() as runtime:
        await handled(runtime, "tally:a", add(41, 1))
        await relayed(runtime)
        async with running(runtime.consumers[0].run()):
            await until_reached(runtime, 2)
        stored = await runtime.store.history("tally:a")
    assert [message.data for message in seen] == [Added(41), Added(1)]
    assert [(m.type, m.stream_id, m.version, m.event_id, m.time, m.correlation_id) for m in seen] == [
        (e.type, e.stream_id, e.version, e.event_id, e.time, e.correlation_id) for e in stored
    ]


@pytest.mark.parametrize(
    "trouble",
    [
        OSError("the network"),
        asyncpg.DiskFullError("no space left on device"),
        asyncpg.DeadlockDetectedError("two in each other's way"),
        Conflict("a stream that another has written to"),
    ],
    ids=lambda error: type(error).__name__,
)
async def test_a_transient_failure_is_waited_out_and_leaves_neither_effect_nor_offset(
    tallies: Tallies, trouble: Exception
) -> None:
    left_behind: list[tuple[Effects, int]] = []
    # If it were taken for poison, the second failure would show it. A conflict is retried at once, but not forever.
    failures = [trouble] * (CONFLICT_ATTEMPTS + 1 if isinstance(trouble, Conflict) else 2)

    async def fail_at_first(connection: Connection, messages: Sequence[Incoming]) -> None:
        await note(connection, messages)
        if failures:
            raise failures.pop()
        left_behind.append((await effects(runtime), await reached(runtime)))  # as other connections see it

    async with tallies.following(fail_at_first).opened() as runtime:
        await make_effects(runtime)
        expected = await fill(runtime, streams=1)
        async with running(runtime.consumers[0].run()):
            await until_reached(runtime, len(expected))
        assert left_behind[0] == ({}, 0)
        assert await effects(runtime) == expected
        assert await runtime.pool.fetchval("SELECT count(*) FROM outbox") == 0, "it became a dead letter"


async def test_messages_of_several_partitions_share_a_transaction(tallies: Tallies) -> None:
    together: list[set[int]] = []

    async def look(connection: Connection, messages: Sequence[Incoming]) -> None:
        await note(connection, messages)
        together.append({message.partition for message in messages})

    async with tallies.following(look).opened() as runtime:
        await make_effects(runtime)
        rounds = 0
        async with asyncio.timeout(60), running(runtime.consumers[0].run()):
            # A poll may return the records of one partition only.
            while not any(len(partitions) > 1 for partitions in together):
                rounds += 1
                sent = len(await fill(runtime))
                await until_reached(runtime, rounds * sent)
        had = await effects(runtime)
        assert len(had) == rounds * sent
        assert set(had.values()) == {1}


class Gate(Decoder):
    """Decodes as usual, but blocks until opened: like a process that is paused while it holds a batch."""

    def __init__(self, decoder: Decoder) -> None:
        self._inner = decoder
        self.holding = asyncio.Event()
        self.opened = asyncio.Event()

    async def decode(self, value: bytes) -> Any:
        self.holding.set()
        await self.opened.wait()
        return await self._inner.decode(value)

    def type_of(self, value: bytes) -> str:
        return self._inner.type_of(value)


def paused(runtime: Runtime) -> tuple[Consumer, Gate]:
    """A second member of the runtime's consumer group, which pauses as soon as it has read something."""
    gate = Gate(runtime.decoder)
    [projection] = runtime.service.projections
    return (
        Consumer(
            runtime.service.name,
            projection.name,
            projection.topics,
            projection.apply,
            gate,
            runtime.pool,
            runtime.settings,
        ),
        gate,
    )


def leave(consumer: Consumer) -> None:
    """Makes the consumer leave its group without noticing."""
    assert consumer._kafka
    consumer._kafka.unsubscribe()


async def until_owner_of_all(consumer: Consumer) -> None:
    async def owner() -> bool:
        return bool(consumer._kafka and len(consumer._kafka.assignment()) == len(consumer._next) == 3)

    await until(owner)


async def fenced(caplog: pytest.LogCaptureFixture) -> bool:
    return any("fenced" in record.message for record in caplog.records)


async def test_a_zombie_consumer_whose_partitions_were_reassigned_writes_nothing(
    tallies: Tallies, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level("INFO", "shared.messaging.consumer")
    async with tallies.following(note).opened() as runtime:
        await make_effects(runtime)
        expected = await fill(runtime)
        zombie, gate = paused(runtime)
        async with running(zombie.run()):
            await asyncio.wait_for(gate.holding.wait(), 20)
            await until_owner_of_all(zombie)
            held = dict(zombie._next)
            leave(zombie)
            async with running(runtime.consumers[0].run()):
                await until_reached(runtime, len(expected))
            assert zombie._next == held, "the zombie has noticed the rebalance, so this tests something else"
            gate.opened.set()
            await until(lambda: fenced(caplog))
        assert await effects(runtime) == expected
        assert await reached(runtime) == len(expected)


async def test_records_of_a_partition_that_was_revoked_meanwhile_are_left_to_its_new_owner(
    tallies: Tallies,
) -> None:
    async with tallies.following(note).opened() as runtime:
        await make_effects(runtime)
        expected = await fill(runtime)
        zombie, gate = paused(runtime)
        async with running(zombie.run()):
            await asyncio.wait_for(gate.holding.wait(), 20)
            await until_owner_of_all(zombie)
            async with running(runtime.consumers[0].run()):
                await until(lambda: reached(runtime))
                assert len(zombie._next) < 3, "no partition was revoked"
                gate.opened.set()
                await until_reached(runtime, len(expected))
        assert await effects(runtime) == expected
        assert await runtime.pool.fetchval("SELECT count(*) FROM outbox") == 0, "good messages became dead letters"


async def test_a_zombie_consumer_that_gets_its_partitions_back_does_not_apply_its_old_records(tallies: Tallies) -> None:
    """Its offset matches the database again; only the offsets of the records show that they are old."""
    async with tallies.following(note).opened() as runtime:
        await make_effects(runtime)
        expected = await fill(runtime)
        zombie, gate = paused(runtime)
        async with running(zombie.run()):
            await asyncio.wait_for(gate.holding.wait(), 20)
            async with running(runtime.consumers[0].run()):
                # The other consumer applies the partitions it was given; the zombie keeps the rest.
                await until(lambda: reached(runtime))
            await until_owner_of_all(zombie)
            gate.opened.set()
            await until_reached(runtime, len(expected))
        assert await effects(runtime) == expected


async def test_two_consumers_that_both_believe_to_own_a_partition_take_turns(tallies: Tallies) -> None:
    """Two consumers hold the same records and apply them at once: one transaction commits, the other is fenced."""
    async with tallies.following(note).opened() as runtime:
        await make_effects(runtime)
        expected = await fill(runtime)
        (here, first), (there, second) = paused(runtime), paused(runtime)
        here_run, there_run = asyncio.create_task(here.run()), asyncio.create_task(there.run())
        await asyncio.wait_for(first.holding.wait(), 20)
        leave(here)
        await asyncio.wait_for(second.holding.wait(), 20)
        first.opened.set()
        second.opened.set()
        try:
            await until_reached(runtime, len(expected))
        finally:
            await stop(here_run, there_run)
        assert await effects(runtime) == expected


async def test_a_recreated_topic_is_read_from_its_start(tallies: Tallies) -> None:
    async with tallies.following(note).opened() as runtime:
        await make_effects(runtime)
        expected = await fill(runtime)
        async with running(runtime.consumers[0].run()):
            await until_reached(runtime, len(expected))
        await delete_topics(tallies.settings, [tallies.topic])
        await create_topics(tallies.settings, {tallies.topic: 3})
        await handled(runtime, "tally:new", add(1))
        await relayed(runtime)
        async with running(runtime.consumers[0].run()):
            await until_reached(runtime, 1)
        assert await effects(runtime) == expected | {("tally:new", 1): 1}


async def test_a_message_that_comes_twice_changes_a_view_once(tallies: Tallies) -> None:
    """The message comes twice in one batch and once in a later one, as after the death of a relay."""
    async with tallies.following(VIEW.apply).opened() as runtime:
        await runtime.pool.execute(str(CreateTable(VIEW.declaration)))
        await handled(runtime, "tally:a", add(1, 10, 100))
        await handled(runtime, "tally:b", add(5))
        await relayed(runtime)
        records = tallies.records()
        send(tallies.settings, tallies.topic, records)

        async def shown() -> dict[str, tuple[int, int]]:
            rows = await runtime.pool.fetch("SELECT stream_id, total, version FROM tallies")
            return {row[0]: (row[1], row[2]) for row in rows}

        async with running(runtime.consumers[0].run()):
            await until_reached(runtime, 2 * len(records))
            assert await shown() == {"tally:a": (111, 3), "tally:b": (5, 1)}
            send(tallies.settings, tallies.topic, records)
            await until_reached(runtime, 3 * len(records))
        assert await shown() == {"tally:a": (111, 3), "tally:b": (5, 1)}
