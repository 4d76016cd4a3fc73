"""The event store: a write is stored whole or not at all, one writer wins a version, and reads give it back."""

import asyncio
from datetime import UTC, datetime, timedelta

import pytest
from uuid_utils import uuid7

from shared.envelope import Message, Recorded
from shared.service import Runtime
from shared.store.answers import StoredAnswer
from shared.store.database import CONNECTION_ERRORS, Unavailable
from shared.store.event_store import Conflict, Write
from shared.store.time_travel import AsOf, as_of
from tests.integration.shared.loops import until
from tests.integration.shared.network import wired_database
from tests.integration.shared.tallies import Added, Tallies, Tally, add, handled, stored_events

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
            deadlines={"tally:b": (NOON, 1)},
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


async def test_an_event_that_the_database_cannot_hold_fails_only_its_own_write(tallies: Tallies) -> None:
    async with tallies.opened() as runtime:
        unstorable = event("tally:\0", 1)
        outcomes = await asyncio.gather(
            *(runtime.store.append(Write(events=[e])) for e in (event("tally:a", 1), unstorable, event("tally:b", 1))),
            return_exceptions=True,
        )
        assert [isinstance(outcome, Exception) for outcome in outcomes] == [False, True, False]
        assert await rows(runtime, "events") == 2
        await asyncio.wait_for(runtime.store.append(Write(events=[event("tally:c", 1)])), 5)


async def test_an_unstorable_event_and_a_conflict_in_one_group_fail_only_their_own_writes(tallies: Tallies) -> None:
    async with tallies.opened() as runtime:
        await runtime.store.append(Write(events=[event("tally:taken", 1)]))
        writes = [event("tally:a", 1), event("tally:taken", 1), event("tally:\0", 1), event("tally:b", 1)]
        outcomes = await asyncio.wait_for(
            asyncio.gather(*(runtime.store.append(Write(events=[e])) for e in writes), return_exceptions=True), 5
        )
        assert [outcome is None for outcome in outcomes] == [True, False, False, True]
        assert isinstance(outcomes[1], Conflict)
        assert await rows(runtime, "events") == 3


async def test_a_stream_is_read_by_version(tallies: Tallies) -> None:
    async with tallies.opened() as runtime:
        second = timedelta(seconds=1)
        events = [event("tally:a", n, NOON + n * second, value=b"%d" % n) for n in range(1, 6)]
        for stored in events:
            await runtime.store.append(Write(events=[stored]))
        store = runtime.store
        assert await store.history("tally:a") == events
        assert await store.history("tally:a", version=2) == events[:2]
        assert await store.load("tally:a", after=3) == [b"4", b"5"]
        assert await store.load("tally:a", after=1, limit=2) == [b"2", b"3"]


async def test_positions_follow_versions_however_many_streams_share_a_commit(tallies: Tallies) -> None:
    async with tallies.opened() as runtime:
        await asyncio.gather(
            *(runtime.store.append(Write(events=[event(f"tally:{s}", v) for v in (1, 2, 3)])) for s in range(50))
        )
        versions: dict[str, list[int]] = {}
        for found in await stored_events(runtime):
            versions.setdefault(found.stream_id, []).append(found.version)
        assert set(map(tuple, versions.values())) == {(1, 2, 3)}
        assert len(versions) == 50


async def test_a_stream_is_read_as_it_was_at_a_version_or_at_a_moment(tallies: Tallies) -> None:
    async with tallies.opened() as runtime:
        for amount in (1, 10, 100):
            await handled(runtime, "tally:a", add(amount))
        times = [recorded.time for recorded in await runtime.store.history("tally:a")]
        assert (await as_of(runtime, "tally:a", AsOf(version=2))).state == Tally(11)
        assert (await as_of(runtime, "tally:a", AsOf(at=times[0]))).state == Tally(1)
        assert (await as_of(runtime, "tally:a", AsOf(at=times[0] - timedelta(microseconds=1)))).version == 0
        assert (await as_of(runtime, "tally:a", AsOf(at=times[2]))).version == 3


async def test_events_of_servers_whose_clocks_disagree_leave_no_hole_in_the_past(tallies: Tallies) -> None:
    """Version 1 was written by a server whose clock is ten seconds fast: a moment in between has seen no event."""
    async with tallies.opened() as runtime:
        await handled(runtime, "tally:a", add(1))
        await handled(runtime, "tally:a", add(10))
        await runtime.pool.execute("UPDATE events SET time = time + interval '10 seconds' WHERE version = 1")
        first, second = await runtime.store.history("tally:a")
        between = await as_of(runtime, "tally:a", AsOf(at=second.time + timedelta(seconds=1)))
        assert (between.state, between.version) == (Tally(0), 0)
        after = await as_of(runtime, "tally:a", AsOf(at=first.time))
        assert (after.state, after.version) == (Tally(11), 2)


async def test_commands_fail_as_unavailable_while_the_database_is_away_and_work_again_afterwards(
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
            with pytest.raises((Unavailable, *CONNECTION_ERRORS)) as error:
                await asyncio.wait_for(asking, 10)
            assert not isinstance(error.value, TimeoutError), "it hangs"
        await wire.mend()

        async def served() -> bool:
            try:
                return (await handled(runtime, "tally:cold", add(1))).events == [Added(1)]
            except (Unavailable, *CONNECTION_ERRORS):
                return False

        await until(served)
        assert (await handled(runtime, "tally:warm", add(1))).state == Tally(2)
