"""Keeps a cancellation from getting lost on its way to a loop that runs until it is cancelled."""

import asyncio


def heed_cancellation() -> None:
    """Raises CancelledError if this task has been cancelled. Call it once per round of a loop.

    `asyncio.wait_for` of Python 3.11, which our client libraries use, swallows a cancellation that arrives at the
    moment at which the awaited task ends (python/cpython#86296, fixed in 3.12). The loop would go on forever, and a
    process that waits for it would never stop.
    """
    task = asyncio.current_task()
    if task and task.cancelling():
        raise asyncio.CancelledError
