"""Reading a topic: every message has its effect once, whoever dies, pauses or comes back; poison is set aside."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from dataclasses import dataclass
from typing import Any

import asyncpg
import pytest
from sqlalchemy import BigInteger, Column, Integer, MetaData, Text
from sqlalchemy.schema import CreateTable
from sqlmodel import Field, SQLModel

from shared.consumer import TRIES, Consumer, Incoming
from shared.database import Connection
from shared.deadletters import LIMIT, MOST_AROUND
from shared.registry import SchemaMemory
from shared.service import Runtime
from shared.settings import Settings
from shared.store import Conflict
from shared.views import RowView
from tests.integration.kit import (
    Added,
    Record,
    Tallies,
    add,
    create_topics,
    delete_topics,
    handled,
    new_tallies,
    relayed,
    running,
    send,
    stop,
    until,
)

pytestmark = pytest.mark.anyio

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


async def note_but_choke(connection: Connection, messages: Sequence[Incoming]) -> None:
    await note(connection, messages)
    if any(message.data.amount == 666 for message in messages):
        try:
            raise KeyError("shelf")
        except KeyError as missing:
            raise RuntimeError("cannot apply 666") from missing


async def test_poison_in_one_partition_holds_up_no_other(tallies: Tallies) -> None:
    async with tallies.following(note_but_choke).opened() as runtime:
        await make_effects(runtime)
        await handled(runtime, "tally:3", add(7, 666, 8))
        expected = await fill(runtime, streams=3) | {("tally:3", 1): 1, ("tally:3", 3): 1}
        async with running(runtime.consumers[0].run()):
            await until_reached(runtime, len(expected) + 1)
        assert await effects(runtime) == expected
        [letter] = await runtime.pool.fetch("SELECT topic, key FROM outbox")
        assert tuple(letter) == (tallies.dead_letter_topic, "tally:3")


Spoil = Callable[[Record], Record]


def header(name: str, value: bytes | None) -> Spoil:
    def spoil(record: Record) -> Record:
        headers = {key: kept for key, kept in record.headers if key != name}
        return record._replace(headers=tuple((headers | ({name: value} if value is not None else {})).items()))

    return spoil


def value(change: Callable[[bytes], bytes | None]) -> Spoil:
    return lambda record: record._replace(value=change(record.value or b""))


POISON: dict[str, tuple[Spoil, str]] = {
    "not the wire format": (value(lambda _: b"hello"), "not in the wire format"),
    "empty": (value(lambda _: b""), "not in the wire format"),
    "a schema id nobody knows": (value(lambda v: b"\0\0\xff\xff\xff" + v[5:]), "no schema with id 16777215"),
    "a schema id of all ones": (value(lambda v: b"\0\xff\xff\xff\xff" + v[5:]), "no schema with id 4294967295"),
    "cut off": (value(lambda v: v[:5]), "not a tests.tally.Added"),
    "trailing bytes": (value(lambda v: v + b"\0\0"), "2 bytes are left over"),
    "a tombstone": (value(lambda _: None), "no value"),
    "no stream": (header("ce_subject", None), "ce_subject"),
    "no headers at all": (lambda record: record._replace(headers=()), "is missing"),
    "a version that is no number": (header("ce_streamversion", b"three"), "invalid literal"),
    "a version out of range": (header("ce_streamversion", b"99999999999"), "out of"),
    "a time that is none": (header("ce_time", b"noon"), "Invalid isoformat"),
    "a stream id that no text column holds": (header("ce_subject", b"tally:\0"), "0x00"),
    "a key that is no text": (lambda record: record._replace(key=b"\0\xff", value=b"hello"), "not in the wire format"),
    "megabytes, compressed": (value(lambda _: bytes(3 * 1024**2)), "no schema with id 0"),
    "headers and a key that fill a message": (
        lambda record: record._replace(key=b"\xff" * 450_000, value=b"hello", headers=(("x", bytes(450_000)),)),
        "not in the wire format",
    ),
    "one that the view chokes on": (lambda record: record, "RuntimeError: cannot apply 666"),
}


@dataclass(frozen=True)
class Graveyard:
    sent: dict[str, Record]
    dead: dict[str, Record]
    effects: Effects
    waiting: int


@pytest.fixture(scope="module")
async def graveyard(stack: Settings) -> AsyncIterator[Graveyard]:
    """One partition with every kind of poison in it, a good message after each; and what became of them."""
    async with new_tallies(stack, partitions=1) as tallies, tallies.following(note_but_choke).opened() as runtime:
        await make_effects(runtime)
        await handled(runtime, "tally:good", add(*range(1, len(POISON) + 1)))
        await handled(runtime, "tally:bad", add(*[1] * (len(POISON) - 1), 666))
        await relayed(runtime)
        good, bad = tallies.records()[: len(POISON)], tallies.records()[len(POISON) :]
        poison = {kind: spoil(bad[n]) for n, (kind, (spoil, _)) in enumerate(POISON.items())}
        await delete_topics(stack, [tallies.topic])
        await create_topics(stack, {tallies.topic: 1})
        send(stack, tallies.topic, [record for pair in zip(poison.values(), good, strict=True) for record in pair])
        async with running(runtime.consumers[0].run(), runtime.relay.run()):
            await until_reached(runtime, 2 * len(POISON))
            await asyncio.wait_for(runtime.relay.drained(), 20)
        dead = tallies.dead_letters()
        by_offset = {int(letter.header("dlq_offset")): letter for letter in dead}
        yield Graveyard(
            poison,
            {kind: by_offset[2 * n] for n, kind in enumerate(POISON) if 2 * n in by_offset},
            await effects(runtime),
            len(dead),
        )


async def test_the_message_after_the_poison_is_handled_and_only_that(graveyard: Graveyard) -> None:
    assert graveyard.effects == {("tally:good", n): 1 for n in range(1, len(POISON) + 1)}
    assert graveyard.waiting == len(POISON), "each poison makes one dead letter, and nothing else does"


@pytest.mark.parametrize("kind", POISON)
async def test_poison_is_a_dead_letter_with_its_reason_its_bytes_and_its_headers(
    graveyard: Graveyard, kind: str
) -> None:
    sent, letter = graveyard.sent[kind], graveyard.dead[kind]
    assert POISON[kind][1] in letter.header("dlq_reason")
    assert letter.header("dlq_causes").splitlines()[0] == letter.header("dlq_reason")
    assert "Traceback" in letter.header("dlq_trace") or "Error" in letter.header("dlq_trace")
    assert letter.header("dlq_consumer").endswith(".effects")
    assert (letter.header("dlq_topic"), letter.header("dlq_partition")) == (
        letter.header("dlq_consumer").replace(".effects", ".events"),
        "0",
    )
    around = len(sent.key or b"") + sum(len(text) for _, text in sent.headers)
    if around <= MOST_AROUND:
        assert letter.headers[: len(sent.headers)] == sent.headers
        assert dict(letter.headers)["dlq_key"] == sent.key
    if len(sent.value or b"") + around <= LIMIT:
        assert letter.value == (sent.value or b"")
    else:
        assert letter.header("dlq_left_out").startswith(f"{len(sent.value or b'')} bytes")


async def test_a_dead_letter_tells_the_whole_chain_of_causes(graveyard: Graveyard) -> None:
    letter = graveyard.dead["one that the view chokes on"]
    assert letter.header("dlq_causes").splitlines() == ["RuntimeError: cannot apply 666", "KeyError: 'shelf'"]
