"""Errands without a database: when a call that was not answered is made again."""

from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from types import SimpleNamespace
from typing import Any

import pytest

from shared.decider import Decided, Versioned
from shared.envelope import Context, now
from shared.errors import Refused
from shared.scheduling.errands import FIRST_WAIT_SECONDS, LONGEST_WAIT_SECONDS, Errands, ErrandWorker, NotAnswered

pytestmark = pytest.mark.anyio

BECAUSE = Context("test")


@pytest.fixture(scope="module")
def anyio_backend() -> str:
    return "asyncio"


class Handler:
    """A stream whose state is the errand that it wants. `result` is the outcome of the command that ends it."""

    decider = SimpleNamespace(category="count")

    def __init__(self, wanted: str | None, result: Decided[Any, Any] | Refused) -> None:
        self.wanted = wanted
        self.result = result

    async def state(self, stream_id: str) -> Versioned[str | None]:
        return Versioned(stream_id, self.wanted, 1)

    async def handle(self, _stream_id: str, _command: str, _context: Context) -> Decided[Any, Any]:
        if isinstance(self.result, Refused):
            raise self.result
        return self.result


DONE: Decided[Any, Any] = Decided("count:a", None, 2, ["Answered"])
UNCHANGED: Decided[Any, Any] = Decided("count:a", "call", 1, [])


@asynccontextmanager
async def worker_with(call: Callable[[str], Awaitable[str]], handler: Handler) -> AsyncIterator[ErrandWorker]:
    @asynccontextmanager
    async def client() -> AsyncIterator[Callable[[str], Awaitable[str]]]:
        yield call

    pool: Any = None
    some_handler: Any = handler
    worker = ErrandWorker(pool, some_handler, Errands(lambda state: state, client), "service")
    async with client() as worker._call:
        yield worker


async def waits(worker: ErrandWorker, attempts: int) -> list[float]:
    """Returns the seconds until the next attempt, after each of these."""
    found = []
    for _ in range(attempts):
        next_due = await worker.look_at("count:a", BECAUSE)
        assert next_due is not None
        found.append((next_due - now()).total_seconds())
    return found


async def no_answer(_operation: str) -> str:
    raise NotAnswered


async def answer(operation: str) -> str:
    return f"answer to {operation}"


async def test_pauses_between_attempts_grow_up_to_the_longest_however_long_nobody_answers() -> None:
    async with worker_with(no_answer, Handler("call", DONE)) as worker:
        found = await waits(worker, 3_000)
    assert found[0] <= FIRST_WAIT_SECONDS
    assert found[3] > FIRST_WAIT_SECONDS * 3
    assert LONGEST_WAIT_SECONDS / 2 - 1 < found[-1] <= LONGEST_WAIT_SECONDS


async def test_a_result_that_changes_nothing_leads_to_another_attempt() -> None:
    async with worker_with(answer, Handler("call", UNCHANGED)) as worker:
        assert (await waits(worker, 1))[0] <= FIRST_WAIT_SECONDS


@pytest.mark.parametrize("result", [DONE, Refused("no", "Not any more.")], ids=["recorded", "refused"])
async def test_an_errand_whose_result_is_recorded_or_refused_is_over(result: Decided[Any, Any] | Refused) -> None:
    async with worker_with(answer, Handler("call", result)) as worker:
        assert await worker.look_at("count:a", BECAUSE) is None


async def test_a_stream_that_wants_nothing_leads_to_no_call() -> None:
    async with worker_with(no_answer, Handler(None, DONE)) as worker:
        assert await worker.look_at("count:a", BECAUSE) is None
