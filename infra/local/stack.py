"""The local stack: which servers it has, and what `till up`, `down` and `status` do with them."""

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from infra.local import kafka, postgres, registry
from infra.local.home import exclusive, furnish, writable
from infra.local.ports import require_free
from infra.local.process import Process, recorded
from infra.local.server import Chore, NotReady, Server
from infra.local.start import Watch, died, start_all
from infra.local.stop import stop_all
from shared.errors import OperatorError
from shared.settings import Settings
from shared.topics import Drift, ensure

ASK_SECONDS = 5.0


def servers(settings: Settings) -> list[Server]:
    """The parts the shop stands on. One whose address was given is someone else's to run."""
    given = settings.model_fields_set
    own: list[Server] = []
    if not {"database_url", "registry_url"} <= given:
        own.append(postgres.server(settings))
    if "kafka_bootstrap" not in given:
        own += kafka.servers(settings)
    if "registry_url" not in given:
        own.append(registry.server(settings))
    return own


def services(settings: Settings) -> list[Server]:  # noqa: ARG001
    """The shop's own processes. They depend on the servers and on the chore `topics`."""
    return []


@dataclass(frozen=True)
class Up:
    settings: Settings
    processes: list[Process]
    drift: list[Drift]


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


async def up(
    settings: Settings,
    only: Sequence[str] = (),
    servers_only: bool = False,
    watch: Watch = lambda _name, _state: None,
    waiting: Callable[[], None] = lambda: None,
) -> Up:
    """Start what is not running, wait until all of it works, create missing topics. Twice is harmless."""
    async with exclusive(settings.home, waiting):
        with writable(settings.home):
            settings = furnish(settings)
            all_parts = [*servers(settings), *([] if servers_only else services(settings))]
            wanted = _with_dependencies(all_parts, only) if only else all_parts
            running = {process.name: process for process in recorded(settings.home) if process.is_alive()}
            require_free(server for server in wanted if server.name not in running)
            topics = _Topics(settings)
            chores = [topics.chore] if not only or "kafka" in only else []
            await start_all(settings.home, wanted, chores, running, watch)
            names = {server.name for server in wanted}
            return Up(settings, [p for p in recorded(settings.home) if p.name in names], topics.drift)


async def status(settings: Settings) -> list[Health]:
    processes = {process.name: process for process in recorded(settings.home)}
    return await asyncio.gather(
        *(_health(settings.home, server, processes.get(server.name)) for server in servers(settings))
    )


async def _health(home: Path, server: Server, process: Process | None) -> Health:
    if process is None:
        return Health(server.name, False, "not started", "", None, 0, "", server.address)
    reason = ""
    try:
        if not process.is_alive():
            raise died(home, process)
        async with asyncio.timeout(ASK_SECONDS):
            await server.ready()
    except TimeoutError:
        reason = f"no answer within {ASK_SECONDS:.0f} s"
    except (NotReady, OperatorError) as problem:
        reason = str(problem)
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


