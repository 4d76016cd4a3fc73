"""Snapshots: long streams are folded from a stored state, with the same result as a full replay."""

from collections.abc import AsyncIterator, Callable
from functools import reduce

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from uuid_utils import uuid7

from infra.settings import Settings
from services.catalog import decider as stock
from services.catalog.events import Event, ProductListed, StockReleased, StockReserved, StockReturned, StockSold
from services.catalog.settings import CatalogSettings
from services.catalog.wiring import catalog
from services.common.money import Money
from shared.schemas.codec import UnknownSchema
from shared.service import Runtime
from shared.store.snapshots import EVERY, Snapshots
from tests.integration.shared.tallies import ANN, Tallies, Tally, add, fresh_handler, handled, new_tallies

pytestmark = pytest.mark.anyio

STOCK = catalog(CatalogSettings()).decider


async def snapshot_version(runtime: Runtime, stream_id: str) -> int | None:
    version: int | None = await runtime.pool.fetchval("SELECT version FROM snapshots WHERE stream_id = $1", stream_id)
    return version


async def burn(runtime: Runtime, stream_id: str, up_to: int) -> None:
    """Makes the beginning of a stream unreadable, so that a fold from there fails."""
    await runtime.pool.execute(
        "UPDATE events SET value = $3 WHERE stream_id = $1 AND version <= $2",
        stream_id,
        up_to,
        b"\0\xff\xff\xff\xff",
    )


async def test_a_long_stream_is_folded_from_its_snapshot(tallies: Tallies) -> None:
    async with tallies.opened() as runtime:
        await handled(runtime, "tally:long", add(*[1] * (EVERY + 100)))
        await handled(runtime, "tally:long", add(5))
        await burn(runtime, "tally:long", EVERY + 100)
        state = await fresh_handler(runtime).state("tally:long")
        assert (state.state, state.version) == (Tally(EVERY + 105), EVERY + 101)


async def test_a_short_stream_has_no_snapshot(tallies: Tallies) -> None:
    async with tallies.opened() as runtime:
        await handled(runtime, "tally:short", add(*[1] * (EVERY - 1)))
        assert await snapshot_version(runtime, "tally:short") is None


async def test_a_long_stream_without_a_snapshot_gets_one_when_it_is_read(tallies: Tallies) -> None:
    async with tallies.opened() as runtime:
        await handled(runtime, "tally:long", add(*[1] * (EVERY + 1)))
        await runtime.pool.execute("TRUNCATE snapshots")
        await fresh_handler(runtime).state("tally:long")
        assert await snapshot_version(runtime, "tally:long") == EVERY + 1


async def test_a_snapshot_of_another_fold_is_ignored_and_replaced(tallies: Tallies) -> None:
    async with tallies.opened() as runtime:
        await handled(runtime, "tally:long", add(*[1] * EVERY))
        await runtime.pool.execute("UPDATE snapshots SET fold = 'yesterday', state = 'Tally\n{\"total\": 1}'")
        assert (await fresh_handler(runtime).state("tally:long")).state == Tally(EVERY)
        await burn(runtime, "tally:long", EVERY)
        assert (await fresh_handler(runtime).state("tally:long")).state == Tally(EVERY), "it was not replaced"
        await runtime.pool.execute("UPDATE snapshots SET fold = 'tomorrow'")
        with pytest.raises(UnknownSchema):  # this proves that `burn` works, which the other tests rely on
            await fresh_handler(runtime).state("tally:long")


async def test_an_older_snapshot_never_replaces_a_newer_one(tallies: Tallies) -> None:
    async with tallies.opened() as runtime:
        snapshots = Snapshots(runtime.pool, runtime.service.decider)
        await snapshots.save("tally:a", Tally(20), 20)
        await snapshots.save("tally:a", Tally(10), 10)
        assert await snapshots.load(["tally:a"]) == {"tally:a": (Tally(20), 20)}
        await snapshots.save("tally:a", Tally(30), 30)
        assert await snapshots.load(["tally:a"]) == {"tally:a": (Tally(30), 30)}


@pytest.fixture(scope="module")
async def opened(stack: Settings) -> AsyncIterator[Runtime]:
    async with new_tallies(stack) as tallies, tallies.opened() as runtime:
        yield runtime


@settings(max_examples=25, deadline=None)
@given(commands=st.lists(st.lists(st.integers(-5, 5), min_size=1, max_size=6), max_size=8), every=st.integers(1, 5))
async def test_a_state_from_snapshots_equals_a_full_replay(
    opened: Runtime, commands: list[list[int]], every: int
) -> None:
    stream_id = f"tally:{uuid7()}"
    for amounts in commands:
        await fresh_handler(opened, every).handle(stream_id, add(*amounts), ANN)
    found = await fresh_handler(opened, every).state(stream_id)
    replayed = [await opened.decoder.decode(value) for value in await opened.store.load(stream_id)]
    assert found.state == reduce(opened.service.decider.evolve, replayed, Tally(0))
    assert found.version == len(replayed) == sum(map(len, commands))
    if len(replayed) >= every:
        assert await snapshot_version(opened, stream_id), "no snapshot was taken: nothing is shown here"


@settings(max_examples=25, deadline=None)
@given(st.lists(st.tuples(st.integers(0, 400), st.integers(0, 9), st.sampled_from("rsxb")), max_size=300))
async def test_the_stock_of_a_product_comes_back_from_its_snapshot(
    opened: Runtime, story: list[tuple[int, int, str]]
) -> None:
    events: list[Event] = [ProductListed("MUG", "Mug ☕", Money(1190, "EUR"), 500)]
    kinds: dict[str, Callable[[str, str, int], Event]] = {
        "r": StockReserved,
        "s": StockSold,
        "x": StockReleased,
        "b": StockReturned,
    }
    events += [kinds[kind]("MUG", f"order-{order}", pieces) for order, pieces, kind in story]
    state = reduce(stock.evolve, events, stock.initial)
    snapshots = Snapshots(opened.pool, STOCK)
    await snapshots.save(stream_id := f"stock:{uuid7()}", state, len(events))
    assert await snapshots.load([stream_id]) == {stream_id: (state, len(events))}
