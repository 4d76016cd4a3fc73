"""Group commit: callers that arrive while one group is being written form the next group and share its commit.

The command handler batches the commands of one stream, and the event store batches the writes of all streams.
"""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from typing import Generic, TypeVar

Item = TypeVar("Item")
Result = TypeVar("Result")


class Batcher(Generic[Item, Result]):
    """Runs `work` on the items of each key, one batch at a time per key, and hands each caller its own result.

    `work` gives one result per item; a result that is an exception is raised in its caller. An exception that `work`
    raises goes to every caller of the batch.
    """

    def __init__(
        self, work: Callable[[str, Sequence[Item]], Awaitable[Sequence[Result | Exception]]], largest: int | None = None
    ) -> None:
        self._work = work
        self._largest = largest
        self._waiting: dict[str, list[tuple[Item, asyncio.Future[Result]]]] = {}
        self._tasks: set[asyncio.Task[None]] = set()

    async def submit(self, key: str, item: Item) -> Result:
        """Adds the item to the next batch of its key, waits for that batch, and returns the item's own result."""
        done: asyncio.Future[Result] = asyncio.get_running_loop().create_future()
        if waiting := self._waiting.get(key):
            waiting.append((item, done))
        else:
            self._waiting[key] = [(item, done)]
            # The work has a task of its own: a caller that is cancelled cancels neither its item nor its neighbours'.
            task = asyncio.create_task(self._run(key))
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)
        return await done

    async def finish(self) -> None:
        """Waits until every accepted item has its result."""
        while self._tasks:
            await asyncio.wait(self._tasks)

    async def _run(self, key: str) -> None:
        waiting = self._waiting[key]
        while batch := waiting[: self._largest]:
            results: Sequence[Result | Exception]
            try:
                results = await self._work(key, [item for item, _ in batch])
            except Exception as error:  # it belongs to the callers
                results = [error] * len(batch)
            del waiting[: len(batch)]
            for (_, done), result in zip(batch, results, strict=True):
                if done.done():
                    continue  # the caller was cancelled; its item has been worked on all the same
                if isinstance(result, Exception):
                    done.set_exception(result)
                else:
                    done.set_result(result)
        del self._waiting[key]
