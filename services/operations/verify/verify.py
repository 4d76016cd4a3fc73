"""Runs all checks of `till verify`: in this process, or in one process per core where there is much to read."""

import asyncio
import os
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import partial
from typing import TYPE_CHECKING, Any

from services.shop.settings import ShopSettings
from shared.store.database import open_pool

if TYPE_CHECKING:  # they take a second to import, and all processes do so at the same time
    from services.operations.verify.checks.lake import Lake
    from services.operations.verify.findings import Findings
    from shared.schemas.contract.event_schemas import Schemas
    from shared.service import Service

CHECKS_AT_ONCE = 4
EVENTS_WORTH_PROCESSES = 100_000
"""The number of events above which processes are worth the time they take to start."""

ListServices = Callable[[ShopSettings], "Sequence[Service]"]
"""Returns the services. It is a function, because it has to be called in each process."""
Report = Callable[[str, int], None]
"""Called with the name of a check, and the number of items it has looked at since the last call."""


@dataclass(frozen=True)
class CheckJob:
    """One check, of one service or of the whole shop."""

    check: str
    service: str = ""

    def __str__(self) -> str:
        return f"{self.check} {self.service}".strip()


@dataclass(frozen=True)
class VerifyRequest:
    """A request to verify a shop. It travels to other processes, so it holds no open connection."""

    settings: ShopSettings
    list_services: ListServices
    since: datetime | None
    patience: float
    schemas: "Schemas | None" = None
    open_lake: "Callable[[Any], Lake | None] | None" = None


def list_jobs(services: "Sequence[Service]") -> list[CheckJob]:
    jobs = [CheckJob(check, service.name) for check in ("log", "folds") for service in services]
    return [*jobs, CheckJob("money"), CheckJob("flow"), CheckJob("lake")]


async def verify(
    request: VerifyRequest, report: Report = lambda _, __: None, processes: int | None = None
) -> "list[Findings]":
    """Runs all checks, and returns their findings in the order of `list_jobs`."""
    from services.operations.verify.processes import run_in_processes

    if processes is None:
        is_worth_it = await _estimate_events(request.settings) > EVENTS_WORTH_PROCESSES
        processes = (os.cpu_count() or 1) if is_worth_it else 1
    found = await (run_in_processes(request, processes, report) if processes > 1 else _run_here(request, report))
    return [findings for of_job in found for findings in of_job]


async def _estimate_events(settings: ShopSettings) -> int:
    """Returns the planner's estimate, which costs nothing and is near enough."""
    from services.operations.reading.stores import no_shop

    async with await open_pool(settings, "public", 1) as pool:
        tables = "SELECT reltuples::bigint FROM pg_class WHERE relname = 'events' AND relkind = 'r'"
        found = [row[0] for row in await pool.fetch(tables)]
    if not found:
        raise no_shop()
    return sum(found)


async def _run_here(request: VerifyRequest, report: Report) -> "list[list[Findings]]":
    limit = asyncio.Semaphore(CHECKS_AT_ONCE)

    async def run(job: CheckJob) -> "list[Findings]":
        async with limit:
            return await run_job(request, job, partial(report, str(job)))

    try:
        async with asyncio.TaskGroup() as tasks:
            running = [tasks.create_task(run(job)) for job in list_jobs(request.list_services(request.settings))]
    except ExceptionGroup as failed:
        raise failed.exceptions[0] from None
    return [task.result() for task in running]


async def run_job(
    request: VerifyRequest, job: CheckJob, report: Callable[[int], None] = lambda _: None
) -> "list[Findings]":
    """Opens all stores, and runs one check."""
    from services.operations.reading.stores import open_stores
    from services.operations.verify.all_checks import run_check
    from services.operations.verify.findings import CheckContext
    from shared.messaging.kafka import kafka_errors

    began = time.monotonic()
    services = request.list_services(request.settings)
    deciders = {service.name: service.decider for service in services}
    url = request.settings.database_url.get_secret_value()
    open_lake = partial(request.open_lake, request.settings) if request.open_lake else None
    with kafka_errors(request.settings):
        async with open_stores(url, deciders, request.schemas, request.settings) as stores:
            context = CheckContext(
                request.settings, services, stores, request.since, request.patience, report, open_lake
            )
            found = await run_check(context, job.check, job.service)
    for findings in found:
        findings.seconds = time.monotonic() - began
    return found
