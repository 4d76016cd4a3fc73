"""Runs the checks of `till verify` in several processes: this one and others, one per core."""

import asyncio
import gc
import multiprocessing
from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager
from functools import partial
from typing import TYPE_CHECKING, Any

import asyncpg
import uvloop

from services.operations.verify import verify
from services.operations.verify.verify import CheckJob, Report, VerifyRequest, run_job
from shared.errors import OperatorError

if TYPE_CHECKING:
    from services.operations.verify.findings import Findings

POLL_SECONDS = 0.1
MAX_JOBS = 64
LONGEST_FIRST = ("folds", "money", "log", "flow", "lake")
"""The order in which checks are started, so that no process is left alone with a long one at the end."""


async def run_in_processes(request: VerifyRequest, processes: int, report: Report) -> "list[list[Findings]]":
    """Runs all jobs; each process takes the next job when it is done with one."""
    spawn = multiprocessing.get_context("spawn")
    meters: Any = spawn.Array("q", MAX_JOBS)
    found: dict[int, list[Findings]] = {}
    with ProcessPoolExecutor(processes - 1, spawn, _start, (request, meters)) as pool, _killed_on_failure():
        for _ in range(processes - 1):
            pool.submit(_import_services)  # starts the processes now, so that they import while this one does
        jobs = verify.list_jobs(request.list_services(request.settings))
        waiting = iter(sorted(enumerate(jobs), key=lambda it: LONGEST_FIRST.index(it[1].check)))

        async def work_here() -> None:
            for n, job in waiting:
                found[n] = await run_job(request, job, partial(report, str(job)))

        async def work_there() -> None:
            for n, job in waiting:
                found[n] = await asyncio.get_running_loop().run_in_executor(pool, _run_there, n, job)

        watching = asyncio.create_task(_report_meters(meters, jobs, report))
        try:
            async with asyncio.TaskGroup() as tasks:
                for _ in range(processes - 1):
                    tasks.create_task(work_there())
                tasks.create_task(work_here())
        except ExceptionGroup as failed:
            raise _explain(failed.exceptions[0]) from None
        finally:
            watching.cancel()
            await watching
    return [found[n] for n in range(len(jobs))]


@contextmanager
def _killed_on_failure() -> Iterator[None]:
    """Terminates the other processes when this one fails; else they would finish their checks first."""
    try:
        yield
    except BaseException:
        for process in multiprocessing.active_children():
            process.terminate()
        raise


def _explain(error: Exception) -> Exception:
    if not isinstance(error, BrokenProcessPool):
        return error
    what = "A process of the check was killed, probably because memory ran out."
    return OperatorError(what, "Check less of history: till verify --since -1d")


async def _report_meters(meters: Any, jobs: Sequence[CheckJob], report: Report) -> None:
    """Reports how far the other processes are until it is cancelled, and then once more."""
    reported = [0] * len(jobs)
    is_last = False
    while not is_last:
        try:
            await asyncio.sleep(POLL_SECONDS)
        except asyncio.CancelledError:
            is_last = True
        for n, job in enumerate(jobs):
            if more := meters[n] - reported[n]:
                report(str(job), more)
                reported[n] += more


def collect_garbage_rarely() -> None:
    """Makes Python search for reference cycles less often: messages form none, and it took a third of the time."""
    gc.set_threshold(100_000, 20, 100)


_started_with: tuple[VerifyRequest, Any]
"""The request and the meters that this process of the pool was started with."""


def _start(request: VerifyRequest, meters: Any) -> None:
    global _started_with  # noqa: PLW0603 - a process of a pool has no other place to keep what it was started with
    _started_with = request, meters
    collect_garbage_rarely()


def _import_services() -> None:
    request, _ = _started_with
    request.list_services(request.settings)
    gc.freeze()  # imported modules are never freed, so the last collection may skip them


def _run_there(number: int, job: CheckJob) -> "list[Findings]":
    request, meters = _started_with

    def report(more: int) -> None:
        meters[number] += more

    try:
        return uvloop.run(run_job(request, job, report))
    except (asyncpg.PostgresError, OSError) as error:  # not all of them can be pickled
        raise OperatorError(f"PostgreSQL went away: {error!r}.", "Start it with: till up") from None
