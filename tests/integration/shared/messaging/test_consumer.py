"""Reading a topic: every message has its effect once, whoever dies, pauses or comes back."""

import asyncio
from collections.abc import Sequence
from typing import Any

import asyncpg
import pytest
from sqlalchemy import BigInteger, Column, Integer, MetaData, Text
from sqlalchemy.schema import CreateTable
from sqlmodel import Field, SQLModel

from shared.consumer import TRIES, Consumer, Incoming
from shared.database import Connection
from shared.registry import SchemaMemory
from shared.service import Runtime
from shared.store import Conflict
from shared.views import RowView
from tests.integration.effects import Effects, effects, fill, make_effects, note, reached, until_reached
from tests.integration.kit import (
    Added,
    Tallies,
    add,
    create_topics,
    delete_topics,
    handled,
    relayed,
    running,
    send,
    stop,
    until,
)

pytestmark = pytest.mark.anyio


async def test_a_consumer_that_dies_before_its_commit_has_had_no_effect_and_the_next_has_it_once(
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


async def test_a_consumer_started_again_goes_on_where_it_was(tallies: Tallies) -> None:
    async with tallies.following(note).opened() as runtime:
        await make_effects(runtime)
        for round_ in range(1, 4):
            for n in range(10):
                await handled(runtime, f"tally:{n}", add(1))
            await relayed(runtime)
            async with running(runtime.consumers[0].run()):
                await until_reached(runtime, 10 * round_)
        assert await effects(runtime) == {(f"tally:{n}", version): 1 for n in range(10) for version in (1, 2, 3)}


async def test_what_it_handles_are_events_with_their_envelope(tallies: Tallies) -> None:
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
async def test_trouble_around_the_message_is_waited_out_and_leaves_neither_effect_nor_offset(
    tallies: Tallies, trouble: Exception
) -> None:
    left_behind: list[tuple[Effects, int]] = []
    # Were it taken for poison, the second would be the proof. A conflict is tried again at once, but not for ever.
    failures = [trouble] * (TRIES + 1 if isinstance(trouble, Conflict) else 2)

    async def fail_once(connection: Connection, messages: Sequence[Incoming]) -> None:
        await note(connection, messages)
        if failures:
            raise failures.pop()
        left_behind.append((await effects(runtime), await reached(runtime)))  # as others see it

    async with tallies.following(fail_once).opened() as runtime:
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
            # What a poll brings is Kafka's to say, and now and then it is one partition at a time.
            while not any(len(partitions) > 1 for partitions in together):
                rounds += 1
                sent = len(await fill(runtime))
                await until_reached(runtime, rounds * sent)
        had = await effects(runtime)
        assert len(had) == rounds * sent
        assert set(had.values()) == {1}


class Gate(SchemaMemory):
    """Decodes as ever, but the first message waits: a process that is paused with a batch in its hands."""

    def __init__(self, memory: SchemaMemory) -> None:
        self._memory = memory
        self.holding = asyncio.Event()
        self.opened = asyncio.Event()

    async def decode(self, value: bytes) -> Any:
        self.holding.set()
        await self.opened.wait()
        return await self._memory.decode(value)

    def type_of(self, value: bytes) -> str:
        return self._memory.type_of(value)


def paused(runtime: Runtime) -> tuple[Consumer, Gate]:
    """A second member of the runtime's consumer group, which pauses as soon as it has read something."""
    gate = Gate(runtime.memory)
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
    """For the group it is gone; it has not been told."""
    assert consumer._kafka
    consumer._kafka.unsubscribe()


async def until_owner_of_all(consumer: Consumer) -> None:
    async def owner() -> bool:
        return bool(consumer._kafka and len(consumer._kafka.assignment()) == len(consumer._next) == 3)

    await until(owner)


async def fenced(caplog: pytest.LogCaptureFixture) -> bool:
    return any("fenced" in record.message for record in caplog.records)


async def test_a_zombie_whose_partitions_went_to_another_writes_nothing(
    tallies: Tallies, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level("INFO", "shared.consumer")
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
            assert zombie._next == held, "it has noticed: then this is another test"
            gate.opened.set()
            await until(lambda: fenced(caplog))
        assert await effects(runtime) == expected
        assert await reached(runtime) == len(expected)


async def test_partitions_that_were_taken_away_while_their_records_were_in_hand_are_left_to_the_other(
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
                assert len(zombie._next) < 3, "nothing was taken from it"
                gate.opened.set()
                await until_reached(runtime, len(expected))
        assert await effects(runtime) == expected
        assert await runtime.pool.fetchval("SELECT count(*) FROM outbox") == 0, "good messages became dead letters"


async def test_a_zombie_who_got_its_partitions_back_does_not_apply_what_it_held_from_before(tallies: Tallies) -> None:
    """Its offset is that of the database again: only the offsets of the records themselves tell that they are old."""
    async with tallies.following(note).opened() as runtime:
        await make_effects(runtime)
        expected = await fill(runtime)
        zombie, gate = paused(runtime)
        async with running(zombie.run()):
            await asyncio.wait_for(gate.holding.wait(), 20)
            async with running(runtime.consumers[0].run()):
                # Those that the other was given; the rest is the zombie's still.
                await until(lambda: reached(runtime))
            await until_owner_of_all(zombie)
            gate.opened.set()
            await until_reached(runtime, len(expected))
        assert await effects(runtime) == expected


async def test_two_who_both_believe_to_own_a_partition_take_turns(tallies: Tallies) -> None:
    """Both hold the same records and apply them at the same moment: one transaction wins, the other is void."""
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


async def test_a_topic_that_was_lost_and_filled_again_is_read_from_its_start(tallies: Tallies) -> None:
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


class TallyRow(SQLModel, table=True):
    __tablename__ = "tallies"
    metadata = MetaData()

    stream_id: str = Field(sa_column=Column(Text, primary_key=True))
    total: int = Field(sa_column=Column(BigInteger, nullable=False))
    version: int = Field(sa_column=Column(Integer, nullable=False))


def count(row: TallyRow | None, message: Incoming) -> TallyRow:
    before = row.total if row else 0
    return TallyRow(stream_id=message.stream_id, total=before + message.data.amount, version=message.version)


VIEW = RowView(TallyRow, TallyRow, lambda message: message.stream_id, count)


async def test_a_message_that_comes_twice_changes_a_view_once(tallies: Tallies) -> None:
    """Twice in one batch, and once more in another: as after the death of a relay."""
    async with tallies.following(VIEW.apply).opened() as runtime:
        await runtime.pool.execute(str(CreateTable(TallyRow.__table__)))  # type: ignore[attr-defined]
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
