"""A dead letter is settled once: retried through the consumer that failed on it, or dropped."""

import asyncio
from collections.abc import Sequence

import pytest

from shared.errors import OperatorError
from shared.messaging.incoming import Incoming
from shared.recovery.rehearsal import rehearse
from shared.recovery.retry import FailedAgain, NoConsumer, retry
from shared.recovery.settlements import drop, read_settlements
from shared.store.database import Connection
from shared.store.event_store import Conflict
from tests.integration.shared.dead_lettering import (
    OLGA,
    POISON,
    all_letters,
    die,
    effects,
    is_blocked,
    note_but_choke,
    repaired,
)
from tests.integration.shared.effects import note
from tests.integration.shared.loops import until
from tests.integration.shared.tallies import Tallies

pytestmark = pytest.mark.anyio


async def test_a_retry_of_a_dead_letter_has_the_missing_effect_and_settles_it(tallies: Tallies) -> None:
    [letter] = await die(tallies, "tally:a")
    async with repaired(tallies).opened() as runtime:
        assert await read_settlements(runtime.pool) == {}
        assert await retry(runtime, letter, OLGA) is None
        assert await effects(runtime) == [("tally:a", POISON)]
        [(death, how)] = (await read_settlements(runtime.pool)).items()
        assert (death, how.how, how.by) == (letter.death, "retried", OLGA)


async def test_a_second_retry_of_a_dead_letter_changes_nothing_and_returns_the_first_settlement(
    tallies: Tallies,
) -> None:
    [letter] = await die(tallies, "tally:a")
    async with repaired(tallies).opened() as runtime:
        await retry(runtime, letter, OLGA)
        before = await retry(runtime, letter, "otto")
        assert before
        assert (before.how, before.by) == ("retried", OLGA)
        assert await effects(runtime) == [("tally:a", POISON)]


async def test_two_concurrent_retries_of_a_dead_letter_have_one_effect(tallies: Tallies) -> None:
    [letter] = await die(tallies, "tally:a")
    applying, go_on = asyncio.Event(), asyncio.Event()

    async def note_slowly(connection: Connection, messages: Sequence[Incoming]) -> None:
        await note(connection, messages)
        applying.set()
        await go_on.wait()

    async with tallies.following(note_slowly).opened() as here, repaired(tallies).opened() as there:
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


async def test_a_retry_that_dies_before_its_commit_has_no_effect_and_the_next_one_has_it(tallies: Tallies) -> None:
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
        assert (await effects(first), await read_settlements(first.pool)) == ([], {})
    async with repaired(tallies).opened() as second:
        assert await retry(second, letter, OLGA) is None
        assert await effects(second) == [("tally:a", POISON)]


async def test_a_retry_that_fails_again_leaves_the_letter_and_makes_no_second_one(tallies: Tallies) -> None:
    [letter] = await die(tallies, "tally:a")
    async with tallies.following(note_but_choke).opened() as runtime:
        with pytest.raises(FailedAgain, match=f"RuntimeError: cannot apply {POISON}"):
            await retry(runtime, letter, OLGA)
        assert (await effects(runtime), await read_settlements(runtime.pool)) == ([], {})
        assert await runtime.pool.fetchval("SELECT count(*) FROM outbox") == 0
    assert await all_letters(tallies) == [letter]


async def test_a_retry_that_conflicts_with_another_writer_decides_again(tallies: Tallies) -> None:
    [letter] = await die(tallies, "tally:a")
    conflicts = [Conflict("events_stream_version")] * 3

    async def lose_a_few_races(connection: Connection, messages: Sequence[Incoming]) -> None:
        await note(connection, messages)
        if conflicts:
            raise conflicts.pop()

    async with tallies.following(lose_a_few_races).opened() as runtime:
        assert await retry(runtime, letter, OLGA) is None
        assert await effects(runtime) == [("tally:a", POISON)]


async def test_a_transient_failure_of_a_retry_is_reported_and_leaves_the_letter(tallies: Tallies) -> None:
    [letter] = await die(tallies, "tally:a")

    async def lose_the_network(_connection: Connection, _messages: Sequence[Incoming]) -> None:
        raise OSError("the network")

    async with tallies.following(lose_the_network).opened() as runtime:
        with pytest.raises(OperatorError, match="could not be tried: OSError: the network") as trouble:
            await retry(runtime, letter, OLGA)
        assert not isinstance(trouble.value, FailedAgain), "a transient failure must not count against the message"
        assert await read_settlements(runtime.pool) == {}


async def test_a_dead_letter_of_a_removed_consumer_can_be_dropped_but_not_retried(tallies: Tallies) -> None:
    [letter] = await die(tallies, "tally:a")
    async with tallies.following(note, name="renamed").opened() as runtime:
        with pytest.raises(NoConsumer, match=rf"there is no consumer {tallies.service.name}\.effects"):
            await retry(runtime, letter, OLGA)
        assert "no consumer" in (await rehearse(runtime, letter)).error
        assert await drop(runtime.pool, letter, "the view is gone", OLGA) is None
        assert letter.death in await read_settlements(runtime.pool)


async def test_a_dropped_dead_letter_keeps_its_reason_and_place_and_is_not_retried(tallies: Tallies) -> None:
    [letter] = await die(tallies, "tally:a")
    async with repaired(tallies).opened() as runtime:
        assert await drop(runtime.pool, letter, "a test message", OLGA) is None
        before = await retry(runtime, letter, OLGA)
        assert before
        assert (before.how, before.why) == ("dropped", "a test message")
        assert await drop(runtime.pool, letter, "another reason", "otto") == before
        assert await effects(runtime) == []
    assert await all_letters(tallies) == [letter]


async def test_a_retry_takes_turns_with_the_consumer_of_the_partition(tallies: Tallies) -> None:
    [letter] = await die(tallies, "tally:a")
    async with repaired(tallies).opened() as runtime:
        async with runtime.pool.acquire() as reader, reader.transaction():
            await reader.execute("UPDATE offsets SET next_offset = next_offset WHERE topic = $1", tallies.topic)
            retrying = asyncio.create_task(retry(runtime, letter, OLGA))
            await until(lambda: is_blocked(runtime))
            assert not retrying.done()
        assert await asyncio.wait_for(retrying, 20) is None
        assert await effects(runtime) == [("tally:a", POISON)]
