"""The views (read models) of the shop by name, each with the service that owns it."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from shared.service import Projection, Service
from shared.store.views import RowView


class NoSuchView(Exception):
    """Raised when no view, and no service with views, has the given name."""


@dataclass(frozen=True)
class Target:
    """A view that can be rebuilt."""

    service: Service
    projection: Projection
    view: RowView[Any]

    @property
    def name(self) -> str:
        """The name of the view, which is also that of its consumer."""
        return f"{self.service.name}.{self.projection.name}"


def list_views(services: Sequence[Service]) -> list[Target]:
    return [Target(service, p, p.view) for service in services for p in service.projections if p.view]


def find_views(services: Sequence[Service], name: str) -> list[Target]:
    """Finds views by `order.orders`, by `orders` where only one view has that name, or all views of service `order`."""
    known = list_views(services)
    exact = [target for target in known if name in (target.name, target.service.name)]
    found = exact or [target for target in known if name == target.projection.name]
    if not found and name in {service.name for service in services}:
        raise NoSuchView(f"{name} has no views. There are: {_names(known)}.")
    if not found:
        raise NoSuchView(f"There is no view {name}. There are: {_names(known)}.")
    if not exact and len(found) > 1:
        raise NoSuchView(f"{name} is a view of several services. Name one of: {_names(found)}.")
    return found


def _names(targets: Sequence[Target]) -> str:
    return ", ".join(target.name for target in targets)
