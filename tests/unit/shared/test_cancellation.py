"""A cancelled loop ends, although something that it waited for has swallowed the cancellation."""

import asyncio
from contextlib import suppress

import pytest

from shared.cancellation import heed_cancellation

pytestmark = pytest.mark.anyio


@pytest.fixture(scope="module")
def anyio_backend() -> str:
    return "asyncio"


async def swallow() -> None:
    """Swallows a cancellation, as `asyncio.wait_for` of Python 3.11 sometimes does."""
    with suppress(asyncio.CancelledError):
        await asyncio.Event().wait()


async def test_a_cancellation_that_was_swallowed_is_heeded_in_the_next_round() -> None:
    rounds = 0

    async def loop() -> None:
        nonlocal rounds
        while True:
            heed_cancellation()
            rounds += 1
            await swallow()

    task = asyncio.create_task(loop())
    await asyncio.sleep(0)
    task.cancel()
    done, _ = await asyncio.wait({task}, timeout=5)
    assert done, "it goes on"
    assert task.cancelled()
    assert rounds == 1


async def test_a_timeout_inside_the_loop_is_no_cancellation_of_the_loop() -> None:
    with suppress(TimeoutError):
        async with asyncio.timeout(0):
            await asyncio.Event().wait()
    heed_cancellation()
