"""What is done between the start of the servers and that of the shop, and once the shop is open."""

from collections.abc import Sequence

from infra.local import kafka, registry
from infra.local import services as shop
from infra.local.server import Chore, Server
from shared.settings import Settings
from shared.topics import Drift, ensure

TOPICS = "topics"
SHELVES = "shelves"


def chores(settings: Settings, started: Sequence[Server], drift: list[Drift]) -> list[Chore]:
    """Those that what is started calls for. What the topics differ in is added to `drift`."""
    names = {server.name for server in started}
    brokers = tuple(server.name for server in kafka.servers(settings))

    async def create_topics() -> None:
        drift.extend(await ensure(settings))

    # Imported when they run, while servers start: the shop's own code takes longer to load than all the rest.
    async def register_schemas() -> None:
        from shared.registry import Registry, push
        from shared.schemas import load_schemas

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
