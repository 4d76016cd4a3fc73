"""Deadlines: a cart that is left alone is abandoned once; a cart in use is not."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AbstractAsyncContextManager, AsyncExitStack, asynccontextmanager
from dataclasses import replace
from datetime import datetime

import pytest
from fastapi import APIRouter
from uuid_utils import uuid7

from infra.settings import Settings
from services.cart.commands import AddItem, OpenCart, Product
from services.cart.decider import Abandoned, Open
from services.cart.events import CartAbandoned
from services.cart.wiring import cart
from services.common.money import Money
from shared.envelope import Context, from_millis, millis, now
from shared.scheduling.deadlines import DeadlineWorker
from shared.scheduling.due_streams import DueStreamWorker
from shared.schemas.contract.event_schemas import Schemas, load_schemas
from shared.service import Runtime, Service, open_service
from tests.integration.shared.loops import PATIENCE, running, until
from tests.integration.shared.tallies import drop_schema, register, relayed
from tests.integration.shared.topics import create_topics, delete_topics

pytestmark = pytest.mark.anyio

ANN = Context("ann")
IDLE = 3_600_000
MUG = Product("Enamel Mug", Money(1190, "EUR"))


@asynccontextmanager
async def carts(settings: Settings, processes: int = 1) -> AsyncIterator[list[Runtime]]:
    """Opens a cart service with its rules and deadlines, under a name and a topic of its own."""
    name = f"cart_{uuid7().hex[-12:]}"
    topic = f"{name}.events"
    real = cart(settings)
    service = Service(name, replace(real.decider, topic=topic), lambda _: APIRouter())
    await create_topics(settings, {topic: 1})
    await register(settings, schemas_of(service))
    async with AsyncExitStack() as stack:
        yield [await stack.enter_async_context(starting(service, settings)) for _ in range(processes)]
    await drop_schema(settings, name)
    await delete_topics(settings, [topic])


def schemas_of(service: Service) -> Schemas:
    return Schemas(
        [replace(schema, topic=service.decider.topic) for schema in load_schemas().newest_of_topic("cart.events")]
    )


def starting(service: Service, settings: Settings) -> AbstractAsyncContextManager[Runtime]:
    return open_service(service, settings, schemas_of(service))


async def opened(runtime: Runtime, ago: int) -> str:
    """Opens a cart as if `ago` milliseconds ago, and leaves it alone."""
    stream_id = f"cart:{uuid7()}"
    await runtime.handler.handle(stream_id, OpenCart("ann", millis(now()) - ago), ANN)
    return stream_id


async def due(runtime: Runtime, stream_id: str) -> datetime | None:
    moment: datetime | None = await runtime.pool.fetchval("SELECT due FROM deadlines WHERE stream_id = $1", stream_id)
    return moment


def worker_of(runtime: Runtime) -> DeadlineWorker:
    deadlines = runtime.service.decider.deadlines
    assert deadlines
    return DeadlineWorker(runtime.pool, runtime.handler, deadlines)


async def look_once(worker: DueStreamWorker, runtime: Runtime) -> int:
    """Handles the streams that are due now; gives their number."""
    async with asyncio.TaskGroup() as tasks, runtime.pool.acquire() as connection:
        return await worker.claim(connection, tasks)


class Looking(DueStreamWorker):
    """Does for each stream that is due what the test says."""

    def __init__(self, runtime: Runtime, look: Callable[[str], Awaitable[None]], wake_on: str = "") -> None:
        super().__init__(runtime.pool, "cart", "test", wake_on)
        self._look_at = look

    async def look_at(self, stream_id: str, because: Context) -> None:  # noqa: ARG002
        await self._look_at(stream_id)


async def types(runtime: Runtime, stream_id: str) -> list[str]:
    return [event.type for event in await runtime.store.history(stream_id)]


async def test_an_idle_cart_is_abandoned_once(stack: Settings) -> None:
    async with carts(stack) as [runtime]:
        idle = await opened(runtime, ago=IDLE)
        worker = worker_of(runtime)
        assert [await look_once(worker, runtime) for _ in range(3)] == [1, 0, 0]
        assert await types(runtime, idle) == ["CartOpened", "CartAbandoned"]
        assert isinstance((await runtime.handler.state(idle)).state, Abandoned)
        assert await due(runtime, idle) is None
        [event] = [await runtime.decoder.decode(e.value) for e in (await runtime.store.history(idle))[1:]]
        opening = await runtime.decoder.decode((await runtime.store.history(idle))[0].value)
        assert isinstance(event, CartAbandoned)
        assert event.idle_since == opening.at


async def test_the_worker_abandons_an_idle_cart_when_its_deadline_has_passed_and_not_earlier(stack: Settings) -> None:
    async with carts(stack) as [runtime]:
        async with running(worker_of(runtime).run()):
            idle = await opened(runtime, ago=IDLE - 200)  # due in a moment, and not before

            async def abandoned() -> bool:
                return await types(runtime, idle) == ["CartOpened", "CartAbandoned"]

            await until(abandoned)
        last = (await runtime.store.history(idle))[-1]
        opening = await runtime.decoder.decode((await runtime.store.history(idle))[0].value)
        assert millis(last.time) >= opening.at + IDLE, "too early"


async def test_a_cart_in_use_is_looked_at_again_when_it_may_be_idle(stack: Settings) -> None:
    async with carts(stack) as [runtime]:
        used = await opened(runtime, ago=IDLE)
        touched = millis(now()) - 1000
        await runtime.handler.handle(used, AddItem("ann", "MUG", 1, MUG, touched), ANN)
        worker = worker_of(runtime)
        assert [await look_once(worker, runtime), await look_once(worker, runtime)] == [1, 0]
        assert isinstance((await runtime.handler.state(used)).state, Open)
        assert await due(runtime, used) == from_millis(touched + IDLE)


async def test_two_workers_abandon_every_cart_once(stack: Settings) -> None:
    async with carts(stack, processes=2) as runtimes:
        idle = await asyncio.gather(*(opened(runtimes[n % 2], ago=IDLE) for n in range(120)))
        workers = [worker_of(runtime) for runtime in runtimes]
        claimed = await asyncio.gather(*(look_once(it, r) for it, r in [*zip(workers, runtimes, strict=True)] * 2))
        assert sum(claimed) == 120
        assert all([await types(runtimes[0], c) == ["CartOpened", "CartAbandoned"] for c in idle])
        assert await runtimes[0].pool.fetchval("SELECT count(*) FROM deadlines") == 0


async def test_a_worker_that_dies_loses_its_claim_and_not_the_deadline(stack: Settings) -> None:
    async with carts(stack, processes=2) as (here, there):
        idle = await opened(here, ago=IDLE)
        async with here.pool.acquire() as connection, connection.transaction():
            # No cart can be written now: the worker holds its claim and waits.
            await connection.execute("LOCK TABLE events IN EXCLUSIVE MODE")
            dying = asyncio.create_task(look_once(worker_of(here), here))

            async def claimed() -> bool:
                lease = await due(here, idle)
                return lease is not None and lease > now()

            await until(claimed)
            assert await look_once(worker_of(there), there) == 0, "claimed by two"
            dying.cancel()
            await asyncio.gather(dying, return_exceptions=True)
            held = await due(here, idle)
            assert held is not None
            assert held > now()
        await here.handler.finish()
        await here.pool.execute("UPDATE deadlines SET due = now()")  # its lease is over
        await look_once(worker_of(there), there)
        assert await types(there, idle) == ["CartOpened", "CartAbandoned"]
        assert await due(there, idle) is None


async def test_a_cart_that_cannot_be_read_does_not_hold_up_the_others(stack: Settings) -> None:
    async with carts(stack, processes=2) as (here, there):
        broken, idle = await opened(here, ago=IDLE + 1000), await opened(here, ago=IDLE)
        await here.pool.execute("UPDATE events SET value = 'garbage' WHERE stream_id = $1", broken)
        assert await look_once(worker_of(there), there) == 2
        assert await types(there, idle) == ["CartOpened", "CartAbandoned"]
        assert await types(there, broken) == ["CartOpened"]
        lease = await due(there, broken)
        assert lease is not None
        assert lease > now(), "it is tried again, later"


async def test_an_abandoned_cart_names_the_event_that_set_the_deadline_as_its_cause(stack: Settings) -> None:
    async with carts(stack) as [runtime]:
        idle, older = await opened(runtime, ago=IDLE), await opened(runtime, ago=IDLE)
        await runtime.handler.handle(idle, AddItem("ann", "MUG", 1, MUG, millis(now()) - IDLE), ANN)
        # A row of an older release:
        await runtime.pool.execute("UPDATE deadlines SET version = 0 WHERE stream_id = $1", older)
        assert await look_once(worker_of(runtime), runtime) == 2
        [opening, _, end] = await runtime.store.history(idle)
        assert (end.causation_id, end.correlation_id) == (opening.event_id, opening.correlation_id)
        assert end.actor == "system:deadline"
        [*_, end] = await runtime.store.history(older)
        assert (end.type, end.causation_id) == ("CartAbandoned", "")


async def test_a_stream_that_takes_long_delays_no_other(stack: Settings) -> None:
    async with carts(stack) as [runtime]:
        met: asyncio.Queue[str] = asyncio.Queue()
        given_up = asyncio.Event()

        async def look(stream_id: str) -> None:
            await met.put(stream_id)
            if stream_id == slow:
                try:
                    await asyncio.Event().wait()
                finally:
                    given_up.set()

        slow = await opened(runtime, ago=IDLE)
        channel = f"outbox_{runtime.service.name}"
        async with running(Looking(runtime, look, channel).run()):
            assert await asyncio.wait_for(met.get(), PATIENCE) == slow
            for _ in range(3):
                quick = await opened(runtime, ago=IDLE)
                assert await asyncio.wait_for(met.get(), PATIENCE) == quick
            assert not given_up.is_set()
        assert given_up.is_set(), "it outlives its worker"
        assert await due(runtime, slow), "its deadline is lost with the worker"


async def test_no_more_streams_are_looked_at_at_once_than_there_is_room_for(
    stack: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("shared.scheduling.due_streams.LARGEST_CLAIM", 3)
    async with carts(stack) as [runtime]:
        together = asyncio.Barrier(3)
        at_once: list[int] = []
        here = 0

        async def look(_stream_id: str) -> None:
            nonlocal here
            here += 1
            at_once.append(here)
            await together.wait()
            here -= 1

        async def none_left() -> bool:
            return not await runtime.pool.fetchval("SELECT EXISTS (SELECT FROM deadlines)")

        for _ in range(9):
            await opened(runtime, ago=IDLE)
        async with running(Looking(runtime, look).run()):
            await until(none_left)
        assert len(at_once) == 9
        assert max(at_once) == 3


async def test_a_service_that_lost_its_database_has_its_deadlines_back_too(stack: Settings) -> None:
    async with carts(stack) as [before]:
        idle, used = await opened(before, ago=IDLE), await opened(before, ago=0)
        due_then = await due(before, used)
        await relayed(before)
        await drop_schema(stack, before.service.name)
        async with starting(before.service, stack) as runtime:
            worker = worker_of(runtime)
            assert [await look_once(worker, runtime) for _ in range(2)] == [2, 0]
            assert await types(runtime, idle) == ["CartOpened", "CartAbandoned"]
            assert await types(runtime, used) == ["CartOpened"]
            assert (await due(runtime, idle), await due(runtime, used)) == (None, due_then)
