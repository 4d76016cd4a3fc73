"""Dead letters are settled once: retried through the consumer that failed on them, or dropped and kept."""

import asyncio
from collections.abc import Sequence

import pytest

from shared.consumer import Incoming
from shared.database import Connection
from shared.errors import OperatorError
from shared.rehearsal import rehearse
from shared.settling import FailedAgain, NoConsumer, drop, retry, settled
from shared.store import Conflict
from tests.integration.dying import OLGA, POISON, all_letters, die, effects, is_blocked, mended, note, note_but_choke
from tests.integration.kit import Tallies, until

pytestmark = pytest.mark.anyio


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
