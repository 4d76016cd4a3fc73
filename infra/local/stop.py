"""Stops processes side by side, each after those that depend on it."""

import asyncio
from collections.abc import Sequence
from pathlib import Path

from infra.local.home import exclusive, was_used
from infra.local.processes.process import Process, forget, recorded


async def down(home: Path) -> list[Process]:
    """Stops everything. It needs nothing but the run files, so it works even if Java or the jars are gone."""
    if not was_used(home):
        return []
    async with exclusive(home):
        return await stop_all(home, list(recorded(home)))


async def stop_all(home: Path, processes: Sequence[Process], keep: bool = True) -> list[Process]:
    """Stops the processes, deletes their run files, and returns those that were still running.

    With `keep`, the files that they write as they end, such as class archives, are put in their places.
    """
    ended = {process.name: asyncio.Event() for process in processes}
    found: list[Process] = []

    async def stop(process: Process) -> None:
        for other in processes:
            if process.name in other.depends_on:
                await ended[other.name].wait()
        if await process.stop(keep):
            found.append(process)
        forget(home, process.name)
        ended[process.name].set()

    async with asyncio.TaskGroup() as tasks:
        for process in processes:
            tasks.create_task(stop(process))
    return found
