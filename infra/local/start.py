"""Starts servers side by side, each after those it depends on, and waits until each one works."""

import asyncio
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Literal

from infra.local.processes import logs
from infra.local.processes.ports import is_open
from infra.local.processes.process import Process, spawn
from infra.local.servers.server import Chore, NotReady, Server
from infra.local.stop import stop_all
from shared.errors import OperatorError

START_SECONDS = 90.0
ANSWER_SECONDS = 15.0

State = Literal["waiting", "preparing", "starting", "ready", "already running", "done"]
Watch = Callable[[str, State], None]


async def start_all(
    home: Path,
    servers: Sequence[Server],
    chores: Sequence[Chore],
    running: Mapping[str, Process],
    watch: Watch,
) -> None:
    """Starts all or nothing: on failure or interruption, everything that was started here is stopped again."""
    parts: list[Server | Chore] = [*servers, *chores]
    done = {part.name: asyncio.Event() for part in parts}
    started: list[Process] = []

    async def bring_up(server: Server) -> None:
        watch(server.name, "waiting")
        await _all_done(server, done)
        process = running.get(server.name)
        if process and await _until_ready(server, process):
            watch(server.name, "already running")
        else:
            watch(server.name, "preparing")
            launch = await server.prepare()
            watch(server.name, "starting")
            process = spawn(home, server, launch)
            started.append(process)
            if not await _until_ready(server, process):
                raise died(home, process, "while starting")
            watch(server.name, "ready")
        done[server.name].set()

    async def do(chore: Chore) -> None:
        await _all_done(chore, done)
        await chore.run()
        watch(chore.name, "done")
        done[chore.name].set()

    try:
        async with asyncio.TaskGroup() as tasks:
            for server in servers:
                tasks.create_task(bring_up(server))
            for chore in chores:
                tasks.create_task(do(chore))
    except BaseException as failure:
        await stop_all(home, started, keep=False)  # a class archive of an incomplete start would be incomplete
        if isinstance(failure, BaseExceptionGroup) and (known := failure.subgroup(OperatorError)):
            raise _first(known) from failure
        raise


def died(home: Path, process: Process, when: str = "") -> OperatorError:
    lines = logs.likely_reasons(logs.log_file(home, process.name))
    message = " ".join(filter(None, (f"{process.name} died", when))) + process.ending()
    quoted = "".join(f"\n    {line}" for line in lines)
    return OperatorError(f"{message}. Its log says:{quoted or ' nothing'}", f"The whole log: till logs {process.name}")


async def _all_done(part: Server | Chore, done: Mapping[str, asyncio.Event]) -> None:
    for name in part.depends_on:
        if name in done:
            await done[name].wait()


async def _until_ready(server: Server, process: Process) -> bool:
    """Waits until the server does real work. Returns False if it died before."""
    reason = "it does not listen"
    try:
        async with asyncio.timeout(START_SECONDS):
            while process.is_alive():
                if is_open(server.port):
                    try:
                        async with asyncio.timeout(ANSWER_SECONDS):
                            await server.ready()
                        return True
                    except (NotReady, TimeoutError) as not_yet:
                        reason = str(not_yet) or f"no answer within {ANSWER_SECONDS:.0f} s"
                await asyncio.sleep(0.03)
    except TimeoutError:
        raise OperatorError(
            f"{server.name} was not ready within {START_SECONDS:.0f} s: {reason}", f"till logs {server.name}"
        ) from None
    return False


def _first(errors: BaseExceptionGroup[OperatorError]) -> OperatorError:
    error = errors.exceptions[0]
    return _first(error) if isinstance(error, BaseExceptionGroup) else error
