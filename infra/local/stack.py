"""The local stack: which servers it has, started together, watched until they work, stopped in order."""

import asyncio
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from infra.local import kafka, logs, postgres, registry
from infra.local.home import exclusive, furnish, writable
from infra.local.ports import is_open, require_free
from infra.local.process import Process, forget, recorded, spawn
from infra.local.server import NotReady, Server
from shared.errors import OperatorError
from shared.settings import Settings
from shared.topics import Drift, ensure

START_SECONDS = 90.0
ASK_SECONDS = 15.0

State = Literal["waiting", "preparing", "starting", "ready", "running", "stopped"]
Watch = Callable[[str, State], None]


def servers(settings: Settings) -> list[Server]:
    """All there is to start here. A part whose address is set elsewhere is someone else's to run."""
    elsewhere = settings.model_fields_set
    own: list[Server] = []
    if not {"database_url", "registry_url"} <= elsewhere:
        own.append(postgres.server(settings))
    if "kafka_bootstrap" not in elsewhere:
        own += kafka.servers(settings)
    if "registry_url" not in elsewhere:
        own.append(registry.server(settings))
    return own


@dataclass(frozen=True)
class Up:
    settings: Settings
    processes: list[Process]
    drift: list[Drift]


async def up(settings: Settings, watch: Watch = lambda _name, _state: None, only: Sequence[str] = ()) -> Up:
    """Start what is not running, wait until all of it works, create missing topics. Twice is harmless."""
    with exclusive(settings.home), writable(settings.home):
        settings = furnish(settings)
        wanted = [server for server in servers(settings) if not only or server.name in only]
        running = {process.name: process for process in recorded(settings.home) if process.is_alive()}
        require_free(server for server in wanted if server.name not in running)
        start = _Start(settings, wanted, running, watch)
        try:
            drift = await start.run()
        except* OperatorError as errors:
            raise _first(errors) from None
        return Up(settings, sorted(start.processes.values(), key=lambda p: p.name), drift)
