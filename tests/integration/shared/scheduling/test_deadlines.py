"""A cart that is left alone is abandoned, once; one that is used is not."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import AbstractAsyncContextManager, AsyncExitStack, asynccontextmanager
from dataclasses import replace
from datetime import datetime

import pytest
from fastapi import APIRouter
from uuid_utils import uuid7

from services.cart.commands import AddItem, OpenCart, Product
from services.cart.decider import Abandoned, Open
from services.cart.events import CartAbandoned
from services.cart.wiring import cart
from shared.deadlines import DeadlineWorker
from shared.envelope import Context, from_millis, millis, now
from shared.money import Money
from shared.schemas import Schemas, load_schemas
from shared.service import Runtime, Service, open_service
from shared.settings import Settings
from tests.integration.kit import PATIENCE, create_topics, delete_topics, drop_schema, register, relayed, running, until

pytestmark = pytest.mark.anyio

ANN = Context("ann")
IDLE = 3_600_000
MUG = Product("Enamel Mug", Money(1190, "EUR"))


@asynccontextmanager
async def carts(settings: Settings, processes: int = 1) -> AsyncIterator[list[Runtime]]:
    """The cart service, its rules and its deadlines, under a name and with a topic of its own."""
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
    return Schemas([replace(schema, topic=service.decider.topic) for schema in load_schemas().of_topic("cart.events")])


def starting(service: Service, settings: Settings) -> AbstractAsyncContextManager[Runtime]:
    return open_service(service, settings, schemas_of(service))


async def opened(runtime: Runtime, ago: int) -> str:
    """A cart that was opened `ago` milliseconds ago and not touched since."""
    stream_id = f"cart:{uuid7()}"
    await runtime.handler.handle(stream_id, OpenCart("ann", millis(now()) - ago), ANN)
    return stream_id


async def due(runtime: Runtime, stream_id: str) -> datetime | None:
    moment: datetime | None = await runtime.pool.fetchval("SELECT due FROM deadlines WHERE stream_id = $1", stream_id)
    return moment


async def types(runtime: Runtime, stream_id: str) -> list[str]:
    return [event.type for event in await runtime.store.history(stream_id)]


async def test_an_idle_cart_is_abandoned_once(stack: Settings) -> None:
    async with carts(stack) as [runtime]:
        idle = await opened(runtime, ago=IDLE)
        worker = DeadlineWorker(runtime.pool, runtime.handler)
        assert [await worker.fire() for _ in range(3)] == [1, 0, 0]
        assert await types(runtime, idle) == ["CartOpened", "CartAbandoned"]
        assert isinstance((await runtime.handler.state(idle)).state, Abandoned)
        assert await due(runtime, idle) is None
        [event] = [await runtime.memory.decode(e.value) for e in (await runtime.store.history(idle))[1:]]
        opening = await runtime.memory.decode((await runtime.store.history(idle))[0].value)
        assert isinstance(event, CartAbandoned)
        assert event.idle_since == opening.at


async def test_the_worker_abandons_it_by_itself(stack: Settings) -> None:
    async with carts(stack) as [runtime]:
        async with running(DeadlineWorker(runtime.pool, runtime.handler).run()):
            idle = await opened(runtime, ago=IDLE - 200)  # due in a moment, and not before

            async def abandoned() -> bool:
                return await types(runtime, idle) == ["CartOpened", "CartAbandoned"]

            await until(abandoned)
        last = (await runtime.store.history(idle))[-1]
        opening = await runtime.memory.decode((await runtime.store.history(idle))[0].value)
        assert millis(last.time) >= opening.at + IDLE, "too early"


async def test_a_cart_in_use_is_looked_at_again_when_it_may_be_idle(stack: Settings) -> None:
    async with carts(stack) as [runtime]:
        used = await opened(runtime, ago=IDLE)
        touched = millis(now()) - 1000
        await runtime.handler.handle(used, AddItem("ann", "MUG", 1, MUG, touched), ANN)
        worker = DeadlineWorker(runtime.pool, runtime.handler)
        assert [await worker.fire(), await worker.fire()] == [1, 0]
        assert isinstance((await runtime.handler.state(used)).state, Open)
        assert await due(runtime, used) == from_millis(touched + IDLE)


async def test_two_workers_abandon_every_cart_once(stack: Settings) -> None:
    async with carts(stack, processes=2) as runtimes:
        idle = await asyncio.gather(*(opened(runtimes[n % 2], ago=IDLE) for n in range(120)))
        workers = [DeadlineWorker(runtime.pool, runtime.handler) for runtime in runtimes]
        claimed = await asyncio.gather(*(worker.fire() for worker in workers * 2))
        assert sum(claimed) == 120
        assert all([await types(runtimes[0], c) == ["CartOpened", "CartAbandoned"] for c in idle])
        assert await runtimes[0].pool.fetchval("SELECT count(*) FROM deadlines") == 0


async def test_who_dies_with_a_claim_loses_it_and_not_the_deadline(stack: Settings) -> None:
    async with carts(stack, processes=2) as (here, there):
        idle = await opened(here, ago=IDLE)
        async with here.pool.acquire() as connection, connection.transaction():
            # No cart can be written now: the worker holds its claim, and waits.
            await connection.execute("LOCK TABLE events IN EXCLUSIVE MODE")
            dying = asyncio.create_task(DeadlineWorker(here.pool, here.handler).fire())

            async def claimed() -> bool:
                lease = await due(here, idle)
                return lease is not None and lease > now()

            await until(claimed)
            assert await DeadlineWorker(there.pool, there.handler).fire() == 0, "claimed by two"
            dying.cancel()
            await asyncio.gather(dying, return_exceptions=True)
            held = await due(here, idle)
            assert held is not None
            assert held > now()
        await here.handler.settled()
        await here.pool.execute("UPDATE deadlines SET due = now()")  # its lease is over
        await DeadlineWorker(there.pool, there.handler).fire()
        assert await types(there, idle) == ["CartOpened", "CartAbandoned"]
        assert await due(there, idle) is None


async def test_a_cart_that_cannot_be_read_does_not_hold_up_the_others(stack: Settings) -> None:
    async with carts(stack, processes=2) as (here, there):
        broken, idle = await opened(here, ago=IDLE + 1000), await opened(here, ago=IDLE)
        await here.pool.execute("UPDATE events SET value = 'garbage' WHERE stream_id = $1", broken)
        assert await DeadlineWorker(there.pool, there.handler).fire() == 2
        assert await types(there, idle) == ["CartOpened", "CartAbandoned"]
        assert await types(there, broken) == ["CartOpened"]
        lease = await due(there, broken)
        assert lease is not None
        assert lease > now(), "it is tried again, later"


async def test_what_a_deadline_leads_to_is_caused_by_the_event_that_set_it(stack: Settings) -> None:
    async with carts(stack) as [runtime]:
        idle, older = await opened(runtime, ago=IDLE), await opened(runtime, ago=IDLE)
        await runtime.handler.handle(idle, AddItem("ann", "MUG", 1, MUG, millis(now()) - IDLE), ANN)
        # As an older release sets it:
        await runtime.pool.execute("UPDATE deadlines SET version = 0 WHERE stream_id = $1", older)
        assert await DeadlineWorker(runtime.pool, runtime.handler).fire() == 2
        [opening, _, end] = await runtime.store.history(idle)
        assert (end.causation_id, end.correlation_id) == (opening.event_id, opening.correlation_id)
        assert end.actor == "system:deadline"
        [*_, end] = await runtime.store.history(older)
        assert (end.type, end.causation_id) == ("CartAbandoned", "")


async def test_one_that_takes_long_delays_no_other(stack: Settings) -> None:
    async with carts(stack) as [runtime]:
        met: asyncio.Queue[str] = asyncio.Queue()
        given_up = asyncio.Event()

        async def look_at(stream_id: str, _because: Context) -> None:
            await met.put(stream_id)
            if stream_id == slow:
                try:
                    await asyncio.Event().wait()
                finally:
                    given_up.set()

        slow = await opened(runtime, ago=IDLE)
        channel = f"outbox_{runtime.service.name}"
        async with running(DeadlineWorker(runtime.pool, runtime.handler, look_at, channel).run()):
            assert await asyncio.wait_for(met.get(), PATIENCE) == slow
            for _ in range(3):
                quick = await opened(runtime, ago=IDLE)
                assert await asyncio.wait_for(met.get(), PATIENCE) == quick
            assert not given_up.is_set()
        assert given_up.is_set(), "it outlives its worker"
        assert await due(runtime, slow), "its deadline is lost with the worker"


async def test_no_more_are_met_at_once_than_there_is_room_for(stack: Settings, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("shared.deadlines.AT_ONCE", 3)
    async with carts(stack) as [runtime]:
        together = asyncio.Barrier(3)
        at_once: list[int] = []
        here = 0

        async def look_at(_stream_id: str, _because: Context) -> None:
            nonlocal here
            here += 1
            at_once.append(here)
            await together.wait()
            here -= 1

        async def none_left() -> bool:
            return not await runtime.pool.fetchval("SELECT EXISTS (SELECT FROM deadlines)")

        for _ in range(9):
            await opened(runtime, ago=IDLE)
        async with running(DeadlineWorker(runtime.pool, runtime.handler, look_at).run()):
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
            worker = DeadlineWorker(runtime.pool, runtime.handler)
            assert [await worker.fire() for _ in range(2)] == [2, 0]
            assert await types(runtime, idle) == ["CartOpened", "CartAbandoned"]
            assert await types(runtime, used) == ["CartOpened"]
            assert (await due(runtime, idle), await due(runtime, used)) == (None, due_then)
