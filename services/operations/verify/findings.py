"""What a check has to say: how much it looked at, and each violation with its place and a command to look closer."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import TYPE_CHECKING

from services.replay.targets import Stores
from shared.service import Service
from shared.settings import Settings

if TYPE_CHECKING:
    from services.replay.checks.lake import Lake

KEPT = 100
"""Violations of one check that are told in full. The rest are counted: memory stays flat, and so does the reader's."""


@dataclass(frozen=True)
class Violation:
    what: str
    stream: str = ""
    position: str = ""
    """Where it is: a version, or topic, partition and offset."""
    look: str = ""
    """The command that shows more of it."""


@dataclass
class Findings:
    check: str
    about: str
    looked_at: int = 0
    unit: str = "events"
    seconds: float = 0.0
    violations: list[Violation] = field(default_factory=list)
    total: int = 0
    notes: list[str] = field(default_factory=list)
    """What is no violation, and should be known all the same."""

    def add(self, violation: Violation) -> None:
        self.total += 1
        if len(self.violations) < KEPT:
            self.violations.append(violation)


@dataclass(frozen=True)
class World:
    """What the checks look at."""

    settings: Settings
    services: Sequence[Service]
    stores: Stores
    since: datetime | None = None
    patience: float = 10.0
    """Seconds that what is on its way has to arrive."""
    tell: Callable[[int], None] = lambda _: None
    """Of so many more that were looked at."""
    lake: Callable[[], "Lake | None"] | None = None
    """Opens the lake. The services know nothing of it; who asks them to verify does."""

    def service(self, category: str) -> Service | None:
        return next((service for service in self.services if service.decider.category == category), None)
