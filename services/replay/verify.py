"""All checks, one after the other or, where there is much to read, in processes of their own: a core for each."""

import asyncio
import importlib
import multiprocessing
import os
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from datetime import datetime
from functools import partial
from typing import Any

import asyncpg
import uvloop

from services.replay.checks.findings import Findings, World
from services.replay.checks.lake import Lake
from services.replay.targets import open_stores, targets
from services.replay.topics import kafka_of
from shared.errors import OperatorError
from shared.schemas import Schemas
from shared.service import Service
from shared.settings import Settings

AT_ONCE = 4
LOOK_SECONDS = 0.1
MANY = 100_000
"""Events from which on processes of their own are worth their start."""

Declared = Callable[[Settings], Sequence[Service]]
"""The services. A function, because a process of its own has to find them by itself."""
Report = Callable[[str, int], None]
"""Which check, and how much it has looked at."""


@dataclass(frozen=True)
class Job:
    check: str
    """The module."""
    of: str = ""
    """The service or view, for a check that has one for each."""

    def __str__(self) -> str:
        return f"{self.check} {self.of}".strip()


@dataclass(frozen=True)
class Ask:
    settings: Settings
    declared: Declared
    since: datetime | None
    patience: float
    schemas: Schemas | None = None
    lake: Callable[[Settings], Lake | None] | None = None


def jobs(services: Sequence[Service]) -> list[Job]:
    """Those that read most come first."""
    found = [Job("log", service.name) for service in services]
    found += [Job("views", target.name) for target in targets(services)]
    return [*found, Job("stock"), Job("money"), Job("flow"), Job("lake")]


async def verify(ask: Ask, report: Report = lambda _, __: None, processes: int | None = None) -> list[Findings]:
    wanted = jobs(ask.declared(ask.settings))
    if processes is None:
        processes = (os.cpu_count() or 1) if await _count(ask) > MANY else 0
    return await (_in_processes(ask, wanted, processes, report) if processes else _here(ask, wanted, report))


async def _count(ask: Ask) -> int:
    """As the planner has it: near enough, and for nothing."""
    async with open_stores(ask.settings, ask.declared(ask.settings), ask.schemas) as stores:
        found = 0
        for store in stores.values():
            if not await store.pool.fetchval("SELECT to_regclass('events') IS NOT NULL"):
                raise OperatorError("No shop has ever run on this database.", "Start one with: till up")
            found += await store.pool.fetchval("SELECT reltuples::bigint FROM pg_class WHERE oid = 'events'::regclass")
        return found


async def run_job(ask: Ask, job: Job, tell: Callable[[int], None] = lambda _: None) -> Findings:
    began = time.monotonic()
    services = ask.declared(ask.settings)
    check: Any = importlib.import_module(f"services.replay.checks.{job.check}").check
    with kafka_of(ask.settings):
        async with open_stores(ask.settings, services, ask.schemas) as stores:
            lake = partial(ask.lake, ask.settings) if ask.lake else None
            world = World(ask.settings, services, stores, ask.since, ask.patience, tell, lake)
            findings: Findings = await (check(world, job.of) if job.of else check(world))
    findings.seconds = time.monotonic() - began
    return findings


async def _here(ask: Ask, wanted: Sequence[Job], report: Report) -> list[Findings]:
    turn = asyncio.Semaphore(AT_ONCE)

    async def run(job: Job) -> Findings:
        async with turn:
            return await run_job(ask, job, partial(report, str(job)))

    try:
        async with asyncio.TaskGroup() as tasks:
            running = [tasks.create_task(run(job)) for job in wanted]
    except ExceptionGroup as failed:
        raise failed.exceptions[0] from None
    return [task.result() for task in running]


async def _in_processes(ask: Ask, wanted: Sequence[Job], processes: int, report: Report) -> list[Findings]:
    """As many as there are cores; each takes the next check when it is done with one."""
    spawn = multiprocessing.get_context("spawn")
    meters: Any = spawn.Array("q", len(wanted))
    told = [0] * len(wanted)
    with ProcessPoolExecutor(processes, spawn, _begin, (ask, meters)) as pool:
        running = [asyncio.wrap_future(pool.submit(_run_there, n, job)) for n, job in enumerate(wanted)]
        try:
            left: set[asyncio.Future[Findings]] = set(running)
            while left:
                done, left = await asyncio.wait(left, timeout=LOOK_SECONDS)
                for one in done:
                    one.result()
                for n, job in enumerate(wanted):
                    report(str(job), meters[n] - told[n])
                    told[n] = meters[n]
        finally:
            pool.shutdown(wait=False, cancel_futures=True)
    return [one.result() for one in running]


_asked: tuple[Ask, Any]
"""Of a process that was started for it: what is to be verified, and where it says how far it is."""


def _begin(ask: Ask, meters: Any) -> None:
    global _asked  # noqa: PLW0603 - a process of a pool has no other place to keep what it was started with
    _asked = ask, meters


def _run_there(number: int, job: Job) -> Findings:
    ask, meters = _asked

    def tell(more: int) -> None:
        meters[number] += more

    try:
        return uvloop.run(run_job(ask, job, tell))
    except (asyncpg.PostgresError, OSError) as error:  # not all of them can travel between processes
        raise OperatorError(f"PostgreSQL went away: {error!r}.", "Start it with: till up") from None
