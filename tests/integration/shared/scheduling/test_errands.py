"""Errands: a tally that is odd wants a call to the outside, made until it is answered, whatever happens meanwhile."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import replace

import pytest

from shared.scheduling.errands import Errands, ErrandWorker, NotAnswered
from shared.service import Runtime
from tests.integration.shared.loops import running, until
from tests.integration.shared.tallies import Add, Tallies, Tally, add, drop_schema, handled, relayed

pytestmark = pytest.mark.anyio


class Outside:
    """The world outside: adds one to each odd tally, after `failures` calls without an answer."""

    def __init__(self, failures: int = 0) -> None:
        self.calls: list[int] = []
        self.is_open = False
        self._failures = failures

    @asynccontextmanager
    async def open(self) -> AsyncIterator[Callable[[int], Awaitable[Add]]]:
        self.is_open = True
        try:
            yield self._call
        finally:
            self.is_open = False

    async def _call(self, total: int) -> Add:
        self.calls.append(total)
        if len(self.calls) <= self._failures:
            raise NotAnswered
        return add(1)


def wanted(tally: Tally) -> int | None:
    return tally.total if tally.total % 2 else None


def with_errands(tallies: Tallies, outside: Outside) -> Tallies:
    return replace(tallies, service=replace(tallies.service, errands=Errands(wanted, outside.open)))


def worker(runtime: Runtime) -> ErrandWorker:
    assert runtime.service.errands
    return ErrandWorker(runtime.pool, runtime.handler, runtime.service.errands, runtime.service.name)


async def until_done(runtime: Runtime) -> None:
    async def done() -> bool:
        return not await runtime.pool.fetchval("SELECT EXISTS (SELECT FROM deadlines)")

    await until(done)


async def total(runtime: Runtime, stream_id: str) -> int:
    return int((await runtime.handler.state(stream_id)).state.total)


async def test_an_errand_is_run_as_soon_as_a_state_wants_it_and_its_result_is_recorded(tallies: Tallies) -> None:
    outside = Outside()
    async with with_errands(tallies, outside).opened() as runtime, running(worker(runtime).run()):
        await handled(runtime, "tally:even", add(2))
        await handled(runtime, "tally:odd", add(1))
        await until_done(runtime)
        assert outside.calls == [1]
        assert (await total(runtime, "tally:odd"), await total(runtime, "tally:even")) == (2, 2)
        [cause, result] = await runtime.store.history("tally:odd")
        assert (result.actor, result.causation_id) == (f"service:{runtime.service.name}", cause.event_id)
        assert result.correlation_id == cause.correlation_id


async def test_an_errand_without_an_answer_is_run_again(tallies: Tallies) -> None:
    outside = Outside(failures=3)
    async with with_errands(tallies, outside).opened() as runtime, running(worker(runtime).run()):
        await handled(runtime, "tally:odd", add(1))
        await until_done(runtime)
        assert outside.calls == [1, 1, 1, 1]
        assert await total(runtime, "tally:odd") == 2


async def test_an_errand_that_is_no_longer_wanted_is_not_run(tallies: Tallies) -> None:
    outside = Outside()
    async with with_errands(tallies, outside).opened() as runtime:
        await handled(runtime, "tally:odd", add(1))
        await handled(runtime, "tally:odd", add(1))
        async with running(worker(runtime).run()):
            await until_done(runtime)
        assert outside.calls == []


async def test_an_errand_of_an_older_release_is_run(tallies: Tallies) -> None:
    """Older releases stored errands as deadlines in 1970."""
    outside = Outside()
    async with with_errands(tallies, outside).opened() as runtime:
        await handled(runtime, "tally:odd", add(1))
        await runtime.pool.execute("UPDATE deadlines SET due = to_timestamp(0), version = 0")
        async with running(worker(runtime).run()):
            await until_done(runtime)
        assert outside.calls == [1]
        assert await total(runtime, "tally:odd") == 2


async def test_a_service_that_lost_its_database_runs_the_errands_that_were_open(tallies: Tallies) -> None:
    outside = Outside()
    service = with_errands(tallies, outside)
    async with service.opened() as runtime:
        await handled(runtime, "tally:odd", add(1))
        await handled(runtime, "tally:even", add(2))
        await relayed(runtime)
    await drop_schema(tallies.settings, tallies.service.name)
    async with service.opened() as runtime, running(worker(runtime).run()):
        await until_done(runtime)
        assert outside.calls == [1]
        assert (await total(runtime, "tally:odd"), await total(runtime, "tally:even")) == (2, 2)


async def test_the_client_is_open_while_the_worker_runs_and_closed_afterwards(tallies: Tallies) -> None:
    outside = Outside()
    async with with_errands(tallies, outside).opened() as runtime:
        async with running(worker(runtime).run()):
            await handled(runtime, "tally:odd", add(1))
            await until_done(runtime)
            assert outside.is_open
        assert not outside.is_open


async def test_a_worker_that_is_stopped_during_a_call_leaves_the_errand_to_the_next_one(tallies: Tallies) -> None:
    outside = Outside()
    called = asyncio.Event()

    @asynccontextmanager
    async def hanging() -> AsyncIterator[Callable[[int], Awaitable[Add]]]:
        async def call(_total: int) -> Add:
            called.set()
            await asyncio.Event().wait()
            raise AssertionError("the call has ended")

        yield call

    stuck = replace(tallies, service=replace(tallies.service, errands=Errands(wanted, hanging)))
    async with stuck.opened() as runtime:
        await handled(runtime, "tally:odd", add(1))
        async with running(worker(runtime).run()):
            await asyncio.wait_for(called.wait(), 30)
        await runtime.pool.execute("UPDATE deadlines SET due = now()")  # its lease is over
    async with with_errands(tallies, outside).opened() as runtime, running(worker(runtime).run()):
        await until_done(runtime)
        assert outside.calls == [1]
