"""The report of a check: how much it looked at, and each violation with its place and a command to look closer."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import TYPE_CHECKING

from services.operations.reading.stores import Store, Stores
from services.shop.settings import ShopSettings
from shared.service import Service

if TYPE_CHECKING:
    from services.operations.verify.checks.lake import Lake

VIOLATIONS_KEPT = 100
"""Violations of one check that are kept in full. The rest are only counted, so that memory stays flat."""


@dataclass(frozen=True)
class Violation:
    what: str
    stream: str = ""
    position: str = ""
    """Its place: a version, or topic, partition and offset."""
    look: str = ""
    """The command that shows more of it."""


@dataclass
class Findings:
    """The outcome of one check."""

    check: str
    about: str
    looked_at: int = 0
    unit: str = "events"
    seconds: float = 0.0
    violations: list[Violation] = field(default_factory=list)
    total: int = 0
    notes: list[str] = field(default_factory=list)
    """Facts that are worth knowing, and not violations."""

    def add(self, violation: Violation) -> None:
        self.total += 1
        if len(self.violations) < VIOLATIONS_KEPT:
            self.violations.append(violation)


@dataclass(frozen=True)
class CheckContext:
    """Everything a check may look at."""

    settings: ShopSettings
    services: Sequence[Service]
    stores: Stores
    since: datetime | None = None
    patience: float = 10.0
    """Seconds to wait for messages that are on their way."""
    report: Callable[[int], None] = lambda _: None
    """Called with the number of items looked at since the last call."""
    open_lake: Callable[[], "Lake | None"] | None = None
    """Opens the lake. Services must not import it, so the caller passes it in."""

    def service_named(self, name: str) -> Service:
        return next(service for service in self.services if service.name == name)

    def store_of(self, category: str) -> Store | None:
        """Returns the store that holds streams of a category, if there is one."""
        return next((store for store in self.stores.values() if store.decider.category == category), None)
