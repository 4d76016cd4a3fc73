"""Checks the processes of the stack with real work, and finds the reason of a failure in the log."""

import asyncio
from dataclasses import dataclass
from pathlib import Path

from infra.local.processes.process import Process, recorded
from infra.local.servers.server import NotReady, Server
from infra.local.stack import servers, services
from infra.local.start import died
from infra.settings import Settings
from shared.errors import OperatorError

ANSWER_SECONDS = 5.0


@dataclass(frozen=True)
class Health:
    name: str
    healthy: bool
    reason: str
    version: str
    pid: int | None
    memory: int
    since: str
    address: str


async def health_of_all(settings: Settings) -> list[Health]:
    """Checks all servers, and those services that were started."""
    processes = {process.name: process for process in recorded(settings.home)}
    expected = servers(settings) + [s for s in services(settings) if s.name in processes]
    return await asyncio.gather(*(_health(settings.home, s, processes.get(s.name)) for s in expected))


async def _health(home: Path, server: Server, process: Process | None) -> Health:
    if process is None:
        return Health(server.name, False, "not started", "", None, 0, "", server.address)
    reason = await _problem(home, server, process)
    alive = process.is_alive()
    return Health(
        name=server.name,
        healthy=not reason,
        reason=reason,
        version=process.version,
        pid=process.pid if alive else None,
        memory=process.memory(),
        since=process.since if alive else "",
        address=server.address,
    )


async def _problem(home: Path, server: Server, process: Process) -> str:
    if not process.is_alive():
        return died(home, process).message
    try:
        async with asyncio.timeout(ANSWER_SECONDS):
            await server.ready()
    except TimeoutError:
        return f"no answer within {ANSWER_SECONDS:.0f} s"
    except (NotReady, OperatorError) as problem:
        return str(problem)
    return ""
