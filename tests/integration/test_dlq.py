"""Dead letters are settled once: retried through the consumer that failed on them, or dropped and kept."""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import replace

import pytest
from sqlalchemy.schema import CreateTable

from shared.consumer import Incoming
from shared.database import Connection
from shared.deadletters import LIMIT, Letter, letter_at, letters
from shared.errors import OperatorError
from shared.rehearsal import rehearse
from shared.service import Reaction, Runtime
from shared.settling import FailedAgain, NoConsumer, beside, drop, retry, settled
from shared.store import Conflict
from tests.integration.kit import (
    Add,
    Record,
    Tallies,
    add,
    create_topics,
    delete_topics,
    handled,
    relayed,
    running,
    send,
    until,
)
from tests.integration.test_consumer import VIEW, TallyRow

pytestmark = pytest.mark.anyio

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


async def test_a_retry_has_the_effect_that_was_missing_and_settles_the_letter(tallies: Tallies) -> None:
    [letter] = await die(tallies, "tally:a")
    async with mended(tallies).opened() as runtime:
        assert await settled(runtime.pool) == {}
        assert await retry(runtime, letter, OLGA) is None
        assert await effects(runtime) == [("tally:a", POISON)]
        [(death, how)] = (await settled(runtime.pool)).items()
        assert (death, how.how, how.by) == (letter.death, "retried", OLGA)


async def test_a_second_retry_does_nothing_and_says_what_was_done(tallies: Tallies) -> None:
    [letter] = await die(tallies, "tally:a")
    async with mended(tallies).opened() as runtime:
        await retry(runtime, letter, OLGA)
        before = await retry(runtime, letter, "otto")
        assert before
        assert (before.how, before.by) == ("retried", OLGA)
        assert await effects(runtime) == [("tally:a", POISON)]


async def test_two_who_retry_at_the_same_moment_have_one_effect(tallies: Tallies) -> None:
    [letter] = await die(tallies, "tally:a")
    applying, go_on = asyncio.Event(), asyncio.Event()

    async def note_slowly(connection: Connection, messages: Sequence[Incoming]) -> None:
        await note(connection, messages)
        applying.set()
        await go_on.wait()

    async with tallies.following(note_slowly).opened() as here, mended(tallies).opened() as there:
        first = asyncio.create_task(retry(here, letter, OLGA))
        await asyncio.wait_for(applying.wait(), 20)
        second = asyncio.create_task(retry(there, letter, "otto"))
        await until(lambda: is_blocked(there))
        go_on.set()
        assert await first is None
        before = await second
        assert before
        assert before.by == OLGA
        assert await effects(there) == [("tally:a", POISON)]


async def test_who_dies_before_the_commit_has_done_nothing_and_the_next_does_it(tallies: Tallies) -> None:
    [letter] = await die(tallies, "tally:a")
    applied = asyncio.Event()

    async def note_and_hang(connection: Connection, messages: Sequence[Incoming]) -> None:
        await note(connection, messages)
        applied.set()
        await asyncio.Event().wait()

    async with tallies.following(note_and_hang).opened() as first:
        dying = asyncio.create_task(retry(first, letter, OLGA))
        await asyncio.wait_for(applied.wait(), 20)
        dying.cancel()
        await asyncio.gather(dying, return_exceptions=True)
        assert (await effects(first), await settled(first.pool)) == ([], {})
    async with mended(tallies).opened() as second:
        assert await retry(second, letter, OLGA) is None
        assert await effects(second) == [("tally:a", POISON)]


async def test_what_fails_again_stays_as_it_was_and_makes_no_second_letter(tallies: Tallies) -> None:
    [letter] = await die(tallies, "tally:a")
    async with tallies.following(note_but_choke).opened() as runtime:
        with pytest.raises(FailedAgain, match=f"RuntimeError: cannot apply {POISON}"):
            await retry(runtime, letter, OLGA)
        assert (await effects(runtime), await settled(runtime.pool)) == ([], {})
        assert await runtime.pool.fetchval("SELECT count(*) FROM outbox") == 0
    assert await all_letters(tallies) == [letter]


async def test_a_stream_that_another_wrote_to_meanwhile_is_no_failure(tallies: Tallies) -> None:
    [letter] = await die(tallies, "tally:a")
    conflicts = [Conflict("events_stream_version")] * 3

    async def lose_a_few_races(connection: Connection, messages: Sequence[Incoming]) -> None:
        await note(connection, messages)
        if conflicts:
            raise conflicts.pop()

    async with tallies.following(lose_a_few_races).opened() as runtime:
        assert await retry(runtime, letter, OLGA) is None
        assert await effects(runtime) == [("tally:a", POISON)]


async def test_trouble_around_the_message_is_told_and_leaves_the_letter(tallies: Tallies) -> None:
    [letter] = await die(tallies, "tally:a")

    async def lose_the_network(_connection: Connection, _messages: Sequence[Incoming]) -> None:
        raise OSError("the network")

    async with tallies.following(lose_the_network).opened() as runtime:
        with pytest.raises(OperatorError, match="could not be tried: OSError: the network") as trouble:
            await retry(runtime, letter, OLGA)
        assert not isinstance(trouble.value, FailedAgain), "it is not the message's fault"
        assert await settled(runtime.pool) == {}


async def test_a_letter_of_a_consumer_that_is_gone_cannot_be_retried_but_dropped(tallies: Tallies) -> None:
    [letter] = await die(tallies, "tally:a")
    async with tallies.following(note, name="renamed").opened() as runtime:
        with pytest.raises(NoConsumer, match=rf"there is no consumer {tallies.service.name}\.effects"):
            await retry(runtime, letter, OLGA)
        assert "no consumer" in (await rehearse(runtime, letter)).error
        assert await drop(runtime.pool, letter, "the view is gone", OLGA) is None
        assert letter.death in await settled(runtime.pool)


async def test_a_dropped_letter_keeps_its_reason_and_its_place_and_is_not_retried(tallies: Tallies) -> None:
    [letter] = await die(tallies, "tally:a")
    async with mended(tallies).opened() as runtime:
        assert await drop(runtime.pool, letter, "a test message", OLGA) is None
        before = await retry(runtime, letter, OLGA)
        assert before
        assert (before.how, before.why) == ("dropped", "a test message")
        assert await drop(runtime.pool, letter, "another reason", "otto") == before
        assert await effects(runtime) == []
    assert await all_letters(tallies) == [letter]


async def test_a_letter_that_a_dying_relay_sent_twice_is_one(tallies: Tallies) -> None:
    [letter] = await die(tallies, "tally:a")
    send(tallies.settings, tallies.dead_letter_topic, tallies.dead_letters())
    assert len(tallies.dead_letters()) == 2
    assert await all_letters(tallies) == [letter]
    copy = await letter_at(tallies.settings, tallies.dead_letter_topic, 0, 1)
    assert (copy.id, copy.death) == (f"{tallies.dead_letter_topic}/0/1", letter.death)
    async with mended(tallies).opened() as runtime:
        assert await retry(runtime, copy, OLGA) is None
        assert await retry(runtime, letter, OLGA)
        assert await effects(runtime) == [("tally:a", POISON)]


async def test_a_letter_at_the_offset_of_a_settled_one_is_another_when_the_topic_was_made_anew(
    tallies: Tallies,
) -> None:
    first, second = await die(tallies, "tally:a", "tally:b")
    [_, later] = tallies.dead_letters()
    async with mended(tallies).opened() as runtime:
        await drop(runtime.pool, first, "lost with its topic", OLGA)
        await delete_topics(tallies.settings, [tallies.dead_letter_topic])
        await create_topics(tallies.settings, {tallies.dead_letter_topic: 1})
        send(tallies.settings, tallies.dead_letter_topic, [later])
        [found] = await all_letters(tallies)
        assert (found.id, found.death) == (first.id, second.death)
        assert await retry(runtime, found, OLGA) is None


async def test_a_message_that_is_read_again_and_dies_again_is_another_letter(tallies: Tallies) -> None:
    """As when a view is built anew: what was settled for the old one is missing in the new."""
    [first] = await die(tallies, "tally:a")
    async with tallies.following(note_but_choke).opened() as runtime:
        await drop(runtime.pool, first, "it does not matter", OLGA)
        await runtime.pool.execute("UPDATE offsets SET next_offset = 0")
        await consumed(runtime, 1)
        [_, second] = await all_letters(tallies)
        assert first.death[:4] == second.death[:4]
        assert second.death not in await settled(runtime.pool)


async def test_a_message_too_large_for_its_letter_is_read_where_it_came_from(tallies: Tallies) -> None:
    async with mended(tallies).opened() as runtime:
        await handled(runtime, "tally:a", add(1))
        await relayed(runtime)
        [record] = tallies.records()
        padded = record._replace(headers=(), value=(record.value or b"") + bytes(LIMIT))
        send(tallies.settings, tallies.topic, [padded])
        await runtime.pool.execute("CREATE TABLE effects (stream_id text, version int, amount bigint)")
        await consumed(runtime, 2)
        [letter] = await all_letters(tallies)
        assert (letter.original.value, letter.left_out[:6]) == (b"", str(len(padded.value or b"")))
        # The bytes that are left over are in the original alone: it was read.
        with pytest.raises(FailedAgain, match=f"{LIMIT} bytes are left over"):
            await retry(runtime, letter, OLGA)
        await delete_topics(tallies.settings, [tallies.topic])
        with pytest.raises(FailedAgain, match="no longer where it was read"):
            await retry(runtime, letter, OLGA)


async def test_a_retry_takes_turns_with_who_reads_the_partition_now(tallies: Tallies) -> None:
    [letter] = await die(tallies, "tally:a")
    async with mended(tallies).opened() as runtime:
        async with runtime.pool.acquire() as reader, reader.transaction():
            await reader.execute("UPDATE offsets SET next_offset = next_offset WHERE topic = $1", tallies.topic)
            retrying = asyncio.create_task(retry(runtime, letter, OLGA))
            await until(lambda: is_blocked(runtime))
            assert not retrying.done()
        assert await asyncio.wait_for(retrying, 20) is None
        assert await effects(runtime) == [("tally:a", POISON)]


async def test_what_others_put_into_the_topic_can_be_seen_and_dropped(tallies: Tallies) -> None:
    send(tallies.settings, tallies.dead_letter_topic, [Record(0, 0, b"k", b"hello", (("a", b"b"),), 1_700_000_000_000)])
    [letter] = await all_letters(tallies)
    assert (letter.reason, letter.death.consumer) == ("not written by a consumer of ours", "")
    assert (letter.original.value, list(letter.original.headers)) == (b"hello", [("a", b"b")])
    async with mended(tallies).opened() as runtime:
        with pytest.raises(NoConsumer):
            await retry(runtime, letter, OLGA)
        assert await drop(runtime.pool, letter, "not ours", OLGA) is None


async def test_the_message_of_a_letter_is_the_message_as_it_was_even_if_it_had_been_a_letter_before(
    tallies: Tallies,
) -> None:
    await die(tallies, "tally:a")
    [dead], [sent] = tallies.dead_letters(), tallies.records()
    send(tallies.settings, tallies.topic, [dead._replace(partition=sent.partition)])
    async with tallies.following(note_but_choke).opened() as runtime:
        await consumed(runtime, 2)
    first, second = await all_letters(tallies)
    assert (first.original.key, first.original.value, tuple(first.original.headers)) == sent.content[:3]
    assert (second.original.key, second.original.value, tuple(second.original.headers)) == dead.content[:3]
    assert [letter.death.offset for letter in (first, second)] == [0, 1]


async def test_a_place_where_there_is_no_letter_is_told(tallies: Tallies) -> None:
    await die(tallies, "tally:a")
    for topic, partition, offset in [
        (tallies.dead_letter_topic, 0, 1),
        (tallies.dead_letter_topic, 1, 0),
        ("nobody.dlq", 0, 0),
    ]:
        with pytest.raises(OperatorError, match=f"There is no dead letter {topic}/{partition}/{offset}"):
            await letter_at(tallies.settings, topic, partition, offset)


# What a retry would do


async def test_a_rehearsal_shows_the_rows_and_leaves_everything_as_it_was(tallies: Tallies) -> None:
    [letter] = await die(tallies, "tally:a")
    async with mended(tallies).opened() as runtime:
        plan = await rehearse(runtime, letter)
        assert plan.rows == {"effects": [{"stream_id": "tally:a", "version": 1, "amount": POISON}]}
        assert (plan.error, plan.commands, plan.events) == ("", [], [])
        assert (await effects(runtime), await settled(runtime.pool)) == ([], {})


async def test_a_rehearsal_shows_only_what_the_retry_would_write(tallies: Tallies) -> None:
    one, other = await die(tallies, "tally:a", "tally:b")
    async with mended(tallies).opened() as runtime:
        await retry(runtime, other, OLGA)
        plan = await rehearse(runtime, one)
        assert [row["stream_id"] for row in plan.rows["effects"]] == [one.header("ce_subject")]


async def test_a_rehearsal_tells_that_it_would_fail_again_and_why(tallies: Tallies) -> None:
    [letter] = await die(tallies, "tally:a")
    async with tallies.following(note_but_choke).opened() as runtime:
        assert (await rehearse(runtime, letter)).error == f"RuntimeError: cannot apply {POISON}"
        assert await effects(runtime) == []


async def test_a_view_whose_row_has_moved_on_is_left_as_it_is(tallies: Tallies) -> None:
    async def view_but_choke(connection: Connection, messages: Sequence[Incoming]) -> None:
        if any(message.data.amount == POISON for message in messages):
            raise RuntimeError(f"cannot apply {POISON}")
        await VIEW.apply(connection, messages)

    async with tallies.following(view_but_choke).opened() as runtime:
        await runtime.pool.execute(str(CreateTable(TallyRow.__table__)))  # type: ignore[attr-defined]
        await handled(runtime, "tally:a", add(POISON, 1))
        await relayed(runtime)
        await consumed(runtime, 2)
    [letter] = await all_letters(tallies)
    async with tallies.following(VIEW.apply).opened() as runtime:
        plan = await rehearse(runtime, letter)
        assert (plan.error, plan.events, plan.rows) == ("", [], {})
        assert await retry(runtime, letter, OLGA) is None
        rows = await runtime.pool.fetch("SELECT stream_id, total, version FROM tallies")
        assert [tuple(row) for row in rows] == [("tally:a", 1, 2)]


def reacting(tallies: Tallies, limit: int, once: Callable[[], Awaitable[None]] | None = None) -> Tallies:
    """Every tally has a copy, which may be limited."""

    def copy(message: Incoming) -> list[tuple[str, Add]]:
        if message.stream_id.startswith("tally:copy-of-"):
            return []
        return [(message.stream_id.replace("tally:", "tally:copy-of-"), add(message.data.amount, limit=limit))]

    reaction = Reaction("copies", [tallies.topic], copy, once)
    return replace(tallies, service=replace(tallies.service, reactions=[reaction]))


async def refused_letter(tallies: Tallies) -> Letter:
    async with reacting(tallies, limit=10).opened() as runtime:
        await handled(runtime, "tally:a", add(11))
        await relayed(runtime)
        await consumed(runtime, 1)
    [letter] = await all_letters(tallies)
    assert letter.reason.startswith("Refused: 0 and 11 are more than 10")
    return letter


async def test_a_reaction_is_rehearsed_with_its_commands_and_events_and_then_retried_once(tallies: Tallies) -> None:
    letter = await refused_letter(tallies)
    async with reacting(tallies, limit=100).opened() as runtime:
        plan = await rehearse(runtime, letter)
        assert plan.commands == [("tally:copy-of-a", add(11, limit=100))]
        assert plan.events == [{"stream_id": "tally:copy-of-a", "version": 1, "type": "Added"}]
        assert await runtime.store.history("tally:copy-of-a") == []
        await retry(runtime, letter, OLGA)
        await retry(runtime, letter, OLGA)
        [copied] = await runtime.store.history("tally:copy-of-a")
        assert copied.causation_id == letter.header("ce_id")
        assert copied.correlation_id == letter.header("ce_correlationid")
        await relayed(runtime)
    assert [record.header("ce_subject") for record in tallies.records()].count("tally:copy-of-a") == 1


async def test_what_a_reaction_waits_for_runs_beside_the_retry(tallies: Tallies) -> None:
    letter = await refused_letter(tallies)
    ready = asyncio.Event()

    async def wait() -> None:
        await ready.wait()

    async def get_ready() -> None:
        ready.set()
        await asyncio.Event().wait()

    waiting = reacting(tallies, limit=100, once=wait)
    service = replace(waiting.service, beside_worker=lambda _: [get_ready()])
    async with replace(waiting, service=service).opened() as runtime, beside(runtime):
        await asyncio.wait_for(retry(runtime, letter, OLGA), 20)
        assert len(await runtime.store.history("tally:copy-of-a")) == 1
