"""The views of the shop by name, and the stores they are folded from: opened for reading, nothing is started."""

from collections.abc import AsyncIterator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from functools import cache
from typing import Any

from services.replay.decoding import Decoder
from shared.database import Pool, open_pool
from shared.schemas import Schemas, load_schemas
from shared.service import Projection, Service
from shared.settings import Settings
from shared.views import RowView

CONNECTIONS = 4


class NoSuchView(Exception):
    """No view, and no service with views, has that name."""


@dataclass(frozen=True)
class Target:
    """A view that can be built anew."""

    service: Service
    projection: Projection
    view: RowView[Any]

    @property
    def name(self) -> str:
        """Also that of its consumer."""
        return f"{self.service.name}.{self.projection.name}"


@dataclass(frozen=True)
class Store:
    service: Service
    pool: Pool
    memory: Decoder


Stores = dict[str, Store]
"""By the name of the service."""


def targets(services: Sequence[Service]) -> list[Target]:
    return [Target(service, p, p.view) for service in services for p in service.projections if p.view]


def find(services: Sequence[Service], name: str) -> list[Target]:
    """By `order.orders`, by `orders` where only one view is called so, or all of the service `order`."""
    known = targets(services)
    named = [target for target in known if name in (target.name, target.service.name)]
    found = named or [target for target in known if name == target.projection.name]
    if not found and name in {service.name for service in services}:
        raise NoSuchView(f"{name} has no views. There are: {_listed(known)}.")
    if not found:
        raise NoSuchView(f"There is no view {name}. There are: {_listed(known)}.")
    if not named and len(found) > 1:
        raise NoSuchView(f"{name} is a view of several services: {_listed(found)}.")
    return found


def _listed(known: Sequence[Target]) -> str:
    return ", ".join(target.name for target in known)


def writer_of(services: Sequence[Service], topic: str) -> Service:
    return next(service for service in services if topic == service.decider.topic or topic in service.documents)


@cache
def _schemas() -> Schemas:
    """Read once: a process that verifies opens the stores for each of its checks."""
    return load_schemas()


@asynccontextmanager
async def open_stores(
    settings: Settings, services: Sequence[Service], schemas: Schemas | None = None
) -> AsyncIterator[Stores]:
    known = schemas or _schemas()
    async with AsyncExitStack() as stack:
        stores: Stores = {}
        for service in services:
            pool = await stack.enter_async_context(await open_pool(settings, service.name, CONNECTIONS))
            stores[service.name] = Store(service, pool, Decoder(settings, known, pool, service.decider))
        yield stores
