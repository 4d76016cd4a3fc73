"""For loops that run until they are cancelled: a cancellation must not get lost on the way to them."""

import asyncio


def heed_cancellation() -> None:
    """Raise if this task has been asked to end. To be called once a round.

    `asyncio.wait_for` of Python 3.11, by which our client libraries wait, swallows a cancellation that arrives in
    the moment in which the awaited is done (python/cpython#86296, mended in 3.12). The loop would go on for ever,
    and a process that waits for it would never end.
    """
    task = asyncio.current_task()
    if task and task.cancelling():
        raise asyncio.CancelledError
