"""All checks, one after the other or, where there is much to read, in processes of their own: a core for each."""

import asyncio
import importlib
import multiprocessing
import os
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import partial
from multiprocessing.connection import Connection
from multiprocessing.sharedctypes import Synchronized
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
    turn = asyncio.Semaphore(processes or AT_ONCE)
    run = _in_a_process if processes else _here
    try:
        async with asyncio.TaskGroup() as tasks:
            running = [tasks.create_task(run(ask, job, turn, report)) for job in wanted]
    except ExceptionGroup as failed:
        raise failed.exceptions[0] from None
    return [task.result() for task in running]


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


async def _here(ask: Ask, job: Job, turn: asyncio.Semaphore, report: Report) -> Findings:
    async with turn:
        return await run_job(ask, job, partial(report, str(job)))


async def _in_a_process(ask: Ask, job: Job, turn: asyncio.Semaphore, report: Report) -> Findings:
    spawn = multiprocessing.get_context("spawn")
    async with turn:
        here, there = spawn.Pipe(duplex=False)
        meter = spawn.Value("q", 0)
        process = spawn.Process(target=_child, args=(ask, job, there, meter), daemon=True)
        process.start()
        there.close()
        told = 0
        try:
            while not here.poll():
                await asyncio.sleep(0.05)
                report(str(job), meter.value - told)
                told = meter.value
            outcome: Findings | Exception = here.recv()
        except EOFError:
            raise OperatorError(f"The check {job} ended without a word.", "It may have been killed.") from None
        finally:
            process.terminate()
            process.join()
    if isinstance(outcome, Exception):
        raise outcome
    return outcome


def _child(ask: Ask, job: Job, result: Connection, meter: "Synchronized[int]") -> None:
    def tell(more: int) -> None:
        meter.value += more

    try:
        result.send(uvloop.run(run_job(ask, job, tell)))
    except (OperatorError, asyncpg.PostgresError, OSError) as error:
        result.send(error)
