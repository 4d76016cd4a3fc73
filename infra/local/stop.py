"""Stopping processes side by side, each after those that depend on it."""

import asyncio
from collections.abc import Callable, Sequence
from pathlib import Path

from infra.local.home import exclusive, was_used
from infra.local.process import Process, forget, recorded

Stopped = Callable[[Process], None]


async def down(home: Path, stopped: Stopped = lambda _: None) -> list[Process]:
    """Needs nothing but the run files, so that it works whatever became of settings, Java or jars."""
    if not was_used(home):
        return []
    async with exclusive(home):
        return await stop_all(home, list(recorded(home)), stopped)


async def stop_all(
    home: Path, processes: Sequence[Process], stopped: Stopped = lambda _: None, keep: bool = True
) -> list[Process]:
    """Those that were still there. Run files go in any case."""
    ended = {process.name: asyncio.Event() for process in processes}
    found: list[Process] = []

    async def stop(process: Process) -> None:
        for other in processes:
            if process.name in other.depends_on:
                await ended[other.name].wait()
        if await process.stop(keep):
            found.append(process)
            stopped(process)
        forget(home, process.name)
        ended[process.name].set()

    async with asyncio.TaskGroup() as tasks:
        for process in processes:
            tasks.create_task(stop(process))
    return found
