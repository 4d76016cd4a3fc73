"""Milestones: any moment of a long stream is near a stored state, with the same result as a full replay."""

from collections.abc import AsyncIterator
from datetime import UTC, datetime, timedelta
from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from uuid_utils import uuid7

from infra.settings import Settings
from shared.envelope import Recorded
from shared.schemas.codec import Undecodable
from shared.service import Runtime
from shared.store import snapshots as kernel
from shared.store.event_store import Write
from shared.store.snapshots import Snapshots
from shared.store.time_travel import AsOf, Past
from tests.integration.shared.tallies import ANN, Added, Tally, add, fresh_handler, new_tallies

pytestmark = pytest.mark.anyio

NOON = datetime(2026, 11, 16, 12, tzinfo=UTC)
SECOND = timedelta(seconds=1)


@pytest.fixture(scope="module")
async def opened(stack: Settings) -> AsyncIterator[Runtime]:
    async with new_tallies(stack) as tallies, tallies.opened() as runtime:
        yield runtime


def past(runtime: Runtime, every: int) -> Past:
    decider = runtime.service.decider
    return Past(decider, runtime.store, Snapshots(runtime.pool, decider, every), runtime.decoder.decode)


async def append(runtime: Runtime, stream_id: str, first: int, amounts: list[tuple[int, int]]) -> None:
    """Appends amounts, each with the second that some server's clock showed."""
    encode = runtime.codec.encode
    events = [
        Recorded(
            stream_id, version, str(uuid7()), "Added", NOON + at * SECOND, "", "", "ann", "", encode(Added(amount))
        )
        for version, (amount, at) in enumerate(amounts, first)
    ]
    await runtime.store.append(Write(events=events))


async def fold(runtime: Runtime, stream_id: str, every: int) -> None:
    """Folds the stream as a process does that has just started, and leaves milestones."""
    await fresh_handler(runtime, every).state(stream_id)


async def milestones(runtime: Runtime, stream_id: str) -> list[int]:
    rows = await runtime.pool.fetch("SELECT version FROM milestones WHERE stream_id = $1 ORDER BY 1", stream_id)
    return [row[0] for row in rows]


@settings(max_examples=15, deadline=None)
@given(
    batches=st.lists(st.lists(st.tuples(st.integers(-5, 5), st.integers(0, 12)), min_size=1, max_size=7), max_size=8),
    every=st.integers(1, 4),
    kept=st.integers(2, 4),
)
async def test_every_version_and_every_moment_equals_a_full_replay(
    opened: Runtime, batches: list[list[tuple[int, int]]], every: int, kept: int
) -> None:
    stream_id, amounts = f"tally:{uuid7()}", [amount for batch in batches for amount in batch]
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(kernel, "MILESTONES", kept)
        first = 1
        for batch in batches:
            await append(opened, stream_id, first, batch)
            await fold(opened, stream_id, every)
            first += len(batch)
        assert len(await milestones(opened, stream_id)) <= kept + 2
        if len(amounts) >= every:
            assert await milestones(opened, stream_id), "there are none: nothing is shown here"
        look = past(opened, every)
        for version in range(len(amounts) + 1):
            found = await look.state(stream_id, AsOf(version=version))
            assert (found.state, found.version) == (Tally(sum(a for a, _ in amounts[:version])), version)
        for at in range(-1, 14):
            up_to = next((n for n, (_, time) in enumerate(amounts) if time > at), len(amounts))
            found = await look.state(stream_id, AsOf(at=NOON + at * SECOND))
            assert (found.state, found.version) == (Tally(sum(a for a, _ in amounts[:up_to])), up_to)


async def test_a_long_stream_leaves_a_bounded_number_of_evenly_spread_milestones(
    opened: Runtime, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(kernel, "MILESTONES", 8)
    stream_id = f"tally:{uuid7()}"
    for first in range(1, 1501, 50):
        await append(opened, stream_id, first, [(1, first)] * 50)
        await fold(opened, stream_id, 50)
    found = await milestones(opened, stream_id)
    assert 4 <= len(found) <= 9
    assert max(after - before for before, after in pairwise([0, *found, 1500])) == 200, found


async def test_the_past_is_folded_from_the_nearest_milestone(opened: Runtime) -> None:
    stream_id = f"tally:{uuid7()}"
    for first in range(1, 101, 20):
        await append(opened, stream_id, first, [(1, version) for version in range(first, first + 20)])
        await fold(opened, stream_id, 20)
    burnt = "UPDATE events SET value = $2 WHERE stream_id = $1 AND version <= 40"
    await opened.pool.execute(burnt, stream_id, b"\0\xff\xff\xff\xff")
    look = past(opened, 20)
    assert (await look.state(stream_id, AsOf(version=55))).state == Tally(55)
    assert (await look.state(stream_id, AsOf(at=NOON + 55 * SECOND))).state == Tally(55)
    with pytest.raises(Undecodable):
        await look.state(stream_id, AsOf(version=39))  # it has to fold the unreadable events


async def test_milestones_of_another_fold_are_ignored_and_replaced(opened: Runtime) -> None:
    stream_id = f"tally:{uuid7()}"
    await append(opened, stream_id, 1, [(1, n) for n in range(10)])
    await fold(opened, stream_id, 5)
    await opened.pool.execute("UPDATE milestones SET fold = 'yesterday', state = 'Tally\n{\"total\": 7}'")
    assert (await past(opened, 5).state(stream_id, AsOf(version=10))).state == Tally(10)
    await opened.pool.execute("DELETE FROM snapshots WHERE stream_id = $1", stream_id)
    await fold(opened, stream_id, 5)
    assert {row[0] for row in await opened.pool.fetch("SELECT fold FROM milestones")} != {"yesterday"}


async def test_a_command_leaves_a_milestone_too(opened: Runtime) -> None:
    stream_id = f"tally:{uuid7()}"
    await opened.handler.handle(stream_id, add(*[1] * (kernel.EVERY + 10)), ANN)
    assert await milestones(opened, stream_id) == [kernel.EVERY + 10]
