"""All checks, one after the other or, where there is much to read, in processes of their own: a core for each."""

import asyncio
import gc
import importlib
import multiprocessing
import os
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime
from functools import partial
from typing import TYPE_CHECKING, Any

import asyncpg
import uvloop

from shared.database import open_pool
from shared.errors import OperatorError
from shared.settings import Settings

if TYPE_CHECKING:  # it takes a second to import them: all processes do so at the same time
    from services.replay.checks.findings import Findings
    from services.replay.checks.lake import Lake
    from shared.schemas import Schemas
    from shared.service import Service

AT_ONCE = 4
LOOK_SECONDS = 0.1
MANY = 100_000
"""Events from which on processes of their own are worth their start."""
MOST_JOBS = 64
LONGEST_FIRST = ("folds", "money", "log", "flow", "lake")
"""So that no process is left alone with a long one at the end."""

Declared = Callable[[Settings], "Sequence[Service]"]
"""The services. A function, because a process of its own has to find them by itself."""
Report = Callable[[str, int], None]
"""Which check, and how much it has looked at."""


@dataclass(frozen=True)
class Job:
    check: str
    """The module."""
    of: str = ""
    """The service, for a check that has one for each."""

    def __str__(self) -> str:
        return f"{self.check} {self.of}".strip()


@dataclass(frozen=True)
class Ask:
    settings: Settings
    declared: Declared
    since: datetime | None
    patience: float
    schemas: "Schemas | None" = None
    lake: "Callable[[Settings], Lake | None] | None" = None


def jobs(services: "Sequence[Service]") -> list[Job]:
    found = [Job(check, service.name) for check in ("log", "folds") for service in services]
    return [*found, Job("money"), Job("flow"), Job("lake")]


async def verify(ask: Ask, report: Report = lambda _, __: None, processes: int | None = None) -> "list[Findings]":
    if processes is None:
        processes = (os.cpu_count() or 1) if await _count(ask.settings) > MANY else 1
    found = await (_in_processes(ask, processes, report) if processes > 1 else _here(ask, report))
    return [findings for of_a_job in found for findings in of_a_job]


async def _count(settings: Settings) -> int:
    """As the planner has it: near enough, and for nothing."""
    async with await open_pool(settings, "public", 1) as pool:
        tables = "SELECT reltuples::bigint FROM pg_class WHERE relname = 'events' AND relkind = 'r'"
        found = [row[0] for row in await pool.fetch(tables)]
    if not found:
        raise OperatorError("No shop has ever run on this database.", "Start one with: till up")
    return sum(found)


async def run_job(ask: Ask, job: Job, tell: Callable[[int], None] = lambda _: None) -> "list[Findings]":
    from services.replay.checks.findings import World
    from services.replay.targets import open_stores
    from services.replay.topics import kafka_of

    began = time.monotonic()
    services = ask.declared(ask.settings)
    check: Any = importlib.import_module(f"services.replay.checks.{job.check}").check
    with kafka_of(ask.settings):
        async with open_stores(ask.settings, services, ask.schemas) as stores:
            lake = partial(ask.lake, ask.settings) if ask.lake else None
            world = World(ask.settings, services, stores, ask.since, ask.patience, tell, lake)
            found: list[Findings] = await (check(world, job.of) if job.of else check(world))
    for findings in found:
        findings.seconds = time.monotonic() - began
    return found


async def _here(ask: Ask, report: Report) -> "list[list[Findings]]":
    turn = asyncio.Semaphore(AT_ONCE)

    async def run(job: Job) -> "list[Findings]":
        async with turn:
            return await run_job(ask, job, partial(report, str(job)))

    try:
        async with asyncio.TaskGroup() as tasks:
            running = [tasks.create_task(run(job)) for job in jobs(ask.declared(ask.settings))]
    except ExceptionGroup as failed:
        raise failed.exceptions[0] from None
    return [task.result() for task in running]


async def _in_processes(ask: Ask, processes: int, report: Report) -> "list[list[Findings]]":
    """This one and others, as many as there are cores; each takes the next check when it is done with one."""
    spawn = multiprocessing.get_context("spawn")
    meters: Any = spawn.Array("q", MOST_JOBS)
    found: dict[int, list[Findings]] = {}
    with ProcessPoolExecutor(processes - 1, spawn, _begin, (ask, meters)) as pool, _no_longer_than_needed():
        for _ in range(processes - 1):
            pool.submit(_declared)  # they start now, and import what they need while this one does
        wanted = jobs(ask.declared(ask.settings))
        waiting = iter(sorted(enumerate(wanted), key=lambda it: LONGEST_FIRST.index(it[1].check)))

        async def work_here() -> None:
            for n, job in waiting:
                found[n] = await run_job(ask, job, partial(report, str(job)))

        async def work_there() -> None:
            for n, job in waiting:
                found[n] = await asyncio.get_running_loop().run_in_executor(pool, _run_there, n, job)

        watching = asyncio.create_task(_watch(meters, wanted, report))
        try:
            async with asyncio.TaskGroup() as tasks:
                for _ in range(processes - 1):
                    tasks.create_task(work_there())
                tasks.create_task(work_here())
        except ExceptionGroup as failed:
            raise _told(failed.exceptions[0]) from None
        finally:
            watching.cancel()
            await watching
    return [found[n] for n in range(len(wanted))]


@contextmanager
def _no_longer_than_needed() -> Iterator[None]:
    try:
        yield
    except BaseException:  # else all of them would first come to the end of what they are at
        for process in multiprocessing.active_children():
            process.terminate()
        raise


def _told(error: Exception) -> Exception:
    if not isinstance(error, BrokenProcessPool):
        return error
    what = "A process of the check was killed from outside, as happens where memory is short."
    return OperatorError(what, "Check less of history: till verify --since -1d")


async def _watch(meters: Any, wanted: Sequence[Job], report: Report) -> None:
    """Tell how far the others are, until it is cancelled; and then once more."""
    told = [0] * len(wanted)
    is_last = False
    while not is_last:
        try:
            await asyncio.sleep(LOOK_SECONDS)
        except asyncio.CancelledError:
            is_last = True
        for n, job in enumerate(wanted):
            if more := meters[n] - told[n]:
                report(str(job), more)
                told[n] += more


def seldom_collect() -> None:
    """Messages by the ten thousand, none of them in a circle: to look for circles took a third of the time."""
    gc.set_threshold(100_000, 20, 100)


_asked: tuple[Ask, Any]
"""Of a process that was started for it: what is to be verified, and where it says how far it is."""


def _begin(ask: Ask, meters: Any) -> None:
    global _asked  # noqa: PLW0603 - a process of a pool has no other place to keep what it was started with
    _asked = ask, meters
    seldom_collect()


def _declared() -> None:
    ask, _ = _asked
    ask.declared(ask.settings)
    gc.freeze()  # as `till` does: nobody waits for it to be searched at the end


def _run_there(number: int, job: Job) -> "list[Findings]":
    ask, meters = _asked

    def tell(more: int) -> None:
        meters[number] += more

    try:
        return uvloop.run(run_job(ask, job, tell))
    except (asyncpg.PostgresError, OSError) as error:  # not all of them can travel between processes
        raise OperatorError(f"PostgreSQL went away: {error!r}.", "Start it with: till up") from None
