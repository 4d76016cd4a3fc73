"""The local stack: which processes it has, and how they start together."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from infra.local.chores import TOPICS, chores
from infra.local.home import exclusive, furnish, writable
from infra.local.processes.ports import require_free
from infra.local.processes.process import Process, recorded
from infra.local.servers import kafka, postgres, registry
from infra.local.servers import services as shop
from infra.local.servers.server import Server
from infra.local.start import Watch, start_all
from infra.settings import Settings
from shared.errors import OperatorError
from shared.messaging.topics import Drift


def servers(settings: Settings) -> list[Server]:
    """Returns the servers that the shop needs. A server whose address was set is run by somebody else."""
    given = settings.model_fields_set
    own: list[Server] = []
    if not {"database_url", "registry_url"} <= given:
        own.append(postgres.server(settings))
    if "kafka_bootstrap" not in given:
        own += kafka.servers(settings)
    if "registry_url" not in given:
        own.append(registry.server(settings))
    return own


def services(settings: Settings) -> list[Server]:
    """Returns the processes of the shop, which depend on the servers, the topics and the schemas."""
    return shop.services(settings, (*(server.name for server in servers(settings)), TOPICS, shop.SCHEMAS))


@dataclass(frozen=True)
class Up:
    settings: Settings
    processes: list[Process]
    drift: list[Drift]


async def up(
    settings: Settings,
    only: Sequence[str] = (),
    servers_only: bool = False,
    watch: Watch = lambda _name, _state: None,
    waiting: Callable[[], None] = lambda: None,
) -> Up:
    """Starts what is not running, waits until everything works, and creates missing topics. It may be repeated."""
    async with exclusive(settings.home, waiting):
        with writable(settings.home):
            kafka.require_same_size(settings)
            settings = furnish(settings)
            everything = [*servers(settings), *([] if servers_only else services(settings))]
            wanted = _with_dependencies(everything, only) if only else everything
            drift: list[Drift] = []
            running = {process.name: process for process in recorded(settings.home) if process.is_alive()}
            shop.require_same_mode(settings, running)
            require_free(server for server in wanted if server.name not in running)
            await start_all(settings.home, wanted, chores(settings, wanted, drift), running, watch)
            names = {server.name for server in wanted}
            return Up(settings, [p for p in recorded(settings.home) if p.name in names], drift)


def _with_dependencies(servers: Sequence[Server], names: Sequence[str]) -> list[Server]:
    known = {server.name: server for server in servers}
    wanted = set[str]()
    asked = list(names)
    while asked:
        name = asked.pop()
        if name in names and name not in known:
            raise OperatorError(f"There is no {name} to start.", f"Choose from: {', '.join(known)}.")
        if name in known and name not in wanted:
            wanted.add(name)
            asked += known[name].depends_on
    return [server for server in servers if server.name in wanted]
