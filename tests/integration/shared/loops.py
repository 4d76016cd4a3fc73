"""Waiting for a condition, and loops that run for as long as a block of a test."""

import asyncio
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine
from contextlib import asynccontextmanager
from typing import Any, TypeVar

Found = TypeVar("Found")


PATIENCE = 60.0


async def until(condition: Callable[[], Awaitable[Found]], seconds: float = PATIENCE) -> Found:
    """Waits until the condition gives something true, and gives that; fails when it takes too long."""
    deadline = time.monotonic() + seconds
    while not (found := await condition()):
        assert time.monotonic() < deadline, f"not within {seconds} s: {condition.__qualname__}"
        await asyncio.sleep(0.01)
    return found


@asynccontextmanager
async def running(*work: Coroutine[Any, Any, None]) -> AsyncIterator[list[asyncio.Task[None]]]:
    """Runs loops for as long as the block lasts. A loop that ends by itself has failed."""
    tasks = [asyncio.create_task(loop) for loop in work]
    try:
        yield tasks
        for task in tasks:
            if task.done() and not task.cancelled():
                task.result()
    finally:
        await stop(*tasks)


async def stop(*tasks: asyncio.Task[None]) -> None:
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)
