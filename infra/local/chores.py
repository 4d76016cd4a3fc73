"""Work between the start of the servers and that of the shop, and after the shop has opened."""

from collections.abc import Sequence

from infra.local.servers import kafka, registry
from infra.local.servers import services as shop
from infra.local.servers.server import Chore, Server
from infra.settings import Settings
from shared.messaging.topics import Drift, ensure_topics

TOPICS = "topics"
SHELVES = "shelves"


def chores(settings: Settings, started: Sequence[Server], drift: list[Drift]) -> list[Chore]:
    """Returns the chores that the started servers need. Differences of topics are added to `drift`."""
    names = {server.name for server in started}
    brokers = tuple(server.name for server in kafka.servers(settings))

    async def create_topics() -> None:
        drift.extend(await ensure_topics(settings))

    # Imported when they run, while servers start, because importing the shop's code is slow.
    async def register_schemas() -> None:
        from shared.schemas.contract.event_schemas import load_schemas
        from shared.schemas.registration import push
        from shared.schemas.registry import Registry

        async with Registry(settings) as known:
            await push(known, load_schemas())

    async def stock_shelves() -> None:
        from infra.local.shelves import stock_if_bare

        await stock_if_bare(settings)

    wanted = []
    if shop.SHOP in names or names.issuperset(brokers):
        wanted.append(Chore(TOPICS, create_topics, brokers))
    if shop.SHOP in names:
        wanted.append(Chore(shop.SCHEMAS, register_schemas, (registry.NAME,)))
        wanted.append(Chore(SHELVES, stock_shelves, tuple(names)))
    return wanted
