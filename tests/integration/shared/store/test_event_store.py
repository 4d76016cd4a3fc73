"""The log in PostgreSQL: all or nothing, one winner per version, and every way to read it back."""

import asyncio
from datetime import UTC, datetime, timedelta

import pytest
from uuid_utils import uuid7

from shared.database import AWAY
from shared.envelope import Message, Recorded
from shared.service import Runtime
from shared.store import Conflict, StoredAnswer, Unavailable, Write
from shared.timetravel import AsOf, as_of
from tests.integration.kit import Added, Tallies, Tally, add, handled, until, wired_database

pytestmark = pytest.mark.anyio

NOON = datetime(2026, 5, 1, 12, 0, 0, 123456, tzinfo=UTC)


def event(stream_id: str, version: int, time: datetime = NOON, value: bytes = b"\0") -> Recorded:
    return Recorded(stream_id, version, str(uuid7()), "Added", time, "correlation", "cause", "ann", "", value)


def message(stream_id: str) -> Message:
    return Message("topic", stream_id, b"value", b"headers", NOON)


def answer(key: str) -> StoredAnswer:
    return StoredAnswer("ann", key, b"digest", 200, b"headers", b"body", NOON)


async def rows(runtime: Runtime, table: str) -> int:
    return int(await runtime.pool.fetchval(f"SELECT count(*) FROM {table}"))


async def test_a_write_is_stored_as_a_whole_or_not_at_all(tallies: Tallies) -> None:
    async with tallies.opened() as runtime:
        await runtime.store.append(Write(events=[event("tally:a", 1)]))
        doomed = Write(
            events=[event("tally:b", 1), event("tally:b", 2), event("tally:a", 1)],
            messages=[message("tally:b")],
            answers=[answer("key")],
            deadlines=[("tally:b", NOON, 1)],
        )
        with pytest.raises(Conflict):
            await runtime.store.append(doomed)
        assert [await rows(runtime, table) for table in ("events", "outbox", "answers", "deadlines")] == [1, 0, 0, 0]


async def test_a_conflict_in_a_group_fails_only_the_one_that_lost(tallies: Tallies) -> None:
    async with tallies.opened() as runtime:
        await runtime.store.append(Write(events=[event("tally:taken", 1)]))
        outcomes = await asyncio.gather(
            *(runtime.store.append(Write(events=[event(f"tally:{name}", 1)])) for name in ("a", "taken", "b")),
            return_exceptions=True,
        )
        assert [type(outcome) for outcome in outcomes] == [type(None), Conflict, type(None)]
        assert len(await runtime.store.history("tally:a")) == len(await runtime.store.history("tally:b")) == 1


async def test_what_the_database_cannot_hold_fails_only_its_own_write(tallies: Tallies) -> None:
    async with tallies.opened() as runtime:
        unstorable = event("tally:\0", 1)
        outcomes = await asyncio.gather(
            *(runtime.store.append(Write(events=[e])) for e in (event("tally:a", 1), unstorable, event("tally:b", 1))),
            return_exceptions=True,
        )
        assert [isinstance(outcome, Exception) for outcome in outcomes] == [False, True, False]
        assert await rows(runtime, "events") == 2
        await asyncio.wait_for(runtime.store.append(Write(events=[event("tally:c", 1)])), 5)


async def test_what_the_database_cannot_hold_in_a_group_with_a_conflict(tallies: Tallies) -> None:
    async with tallies.opened() as runtime:
        await runtime.store.append(Write(events=[event("tally:taken", 1)]))
        writes = [event("tally:a", 1), event("tally:taken", 1), event("tally:\0", 1), event("tally:b", 1)]
        outcomes = await asyncio.wait_for(
            asyncio.gather(*(runtime.store.append(Write(events=[e])) for e in writes), return_exceptions=True), 5
        )
        assert [outcome is None for outcome in outcomes] == [True, False, False, True]
        assert isinstance(outcomes[1], Conflict)
        assert await rows(runtime, "events") == 3


async def test_a_stream_is_read_by_version_by_time_and_by_position(tallies: Tallies) -> None:
    async with tallies.opened() as runtime:
        second = timedelta(seconds=1)
        events = [event("tally:a", n, NOON + n * second, value=b"%d" % n) for n in range(1, 6)]
        for stored in events:
            await runtime.store.append(Write(events=[stored]))
        store = runtime.store
        assert await store.history("tally:a") == events
        assert await store.history("tally:a", version=2) == events[:2]
        assert await store.history("tally:a", at=NOON + 3 * second) == events[:3]
        assert await store.history("tally:a", at=NOON + 3 * second - timedelta(microseconds=1)) == events[:2]
        assert await store.load("tally:a", after=3) == [b"4", b"5"]
        assert await store.load("tally:a", after=1, limit=2) == [b"2", b"3"]
        by_position = [found async for found in store.read(chunk=2)]
        assert [found for _, found in by_position] == events
        assert [found async for found in store.read(after=by_position[1][0])] == by_position[2:]


async def test_positions_follow_versions_however_many_streams_share_a_commit(tallies: Tallies) -> None:
    async with tallies.opened() as runtime:
        await asyncio.gather(
            *(runtime.store.append(Write(events=[event(f"tally:{s}", v) for v in (1, 2, 3)])) for s in range(50))
        )
        versions: dict[str, list[int]] = {}
        async for _, found in runtime.store.read():
            versions.setdefault(found.stream_id, []).append(found.version)
        assert set(map(tuple, versions.values())) == {(1, 2, 3)}
        assert len(versions) == 50


async def test_a_tally_as_it_was_at_a_version_or_at_a_moment(tallies: Tallies) -> None:
    async with tallies.opened() as runtime:
        for amount in (1, 10, 100):
            await handled(runtime, "tally:a", add(amount))
        times = [recorded.time for recorded in await runtime.store.history("tally:a")]
        assert (await as_of(runtime, "tally:a", AsOf(version=2))).state == Tally(11)
        assert (await as_of(runtime, "tally:a", AsOf(at=times[0]))).state == Tally(1)
        assert (await as_of(runtime, "tally:a", AsOf(at=times[0] - timedelta(microseconds=1)))).version == 0
        assert (await as_of(runtime, "tally:a", AsOf(at=times[2]))).version == 3


async def test_servers_whose_clocks_disagree_leave_no_hole_in_the_past(tallies: Tallies) -> None:
    """Version 1 was written by a server that is ten seconds fast: a moment in between has seen neither."""
    async with tallies.opened() as runtime:
        await handled(runtime, "tally:a", add(1))
        await handled(runtime, "tally:a", add(10))
        await runtime.pool.execute("UPDATE events SET time = time + interval '10 seconds' WHERE version = 1")
        first, second = await runtime.store.history("tally:a")
        between = await as_of(runtime, "tally:a", AsOf(at=second.time + timedelta(seconds=1)))
        assert (between.state, between.version) == (Tally(0), 0)
        after = await as_of(runtime, "tally:a", AsOf(at=first.time))
        assert (after.state, after.version) == (Tally(11), 2)


async def test_while_the_database_is_away_that_is_what_is_said_and_afterwards_all_is_served(
    tallies: Tallies,
) -> None:
    async with wired_database(tallies.settings) as (wire, settings), tallies.opened(settings) as runtime:
        await handled(runtime, "tally:warm", add(1))
        await wire.cut()
        for asking in (
            handled(runtime, "tally:warm", add(1)),
            handled(runtime, "tally:cold", add(1)),
            runtime.handler.state("tally:warm"),
        ):
            with pytest.raises((Unavailable, *AWAY)) as error:
                await asyncio.wait_for(asking, 10)
            assert not isinstance(error.value, TimeoutError), "it hangs"
        await wire.mend()

        async def served() -> bool:
            try:
                return (await handled(runtime, "tally:cold", add(1))).events == [Added(1)]
            except (Unavailable, *AWAY):
                return False

        await until(served)
        assert (await handled(runtime, "tally:warm", add(1))).state == Tally(2)
