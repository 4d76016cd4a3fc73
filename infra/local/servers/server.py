"""What a server of the local stack is: how it is started, when it is ready, what stops it.

Kafka, the registry and PostgreSQL are declared in their own modules; a service of the shop is one more.
"""

import signal
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path


class NotReady(Exception):
    """The server runs, but did not do what was asked of it. Asked again, it may."""


@dataclass(frozen=True)
class Launch:
    command: list[str]
    version: str
    env: Mapping[str, str] = field(default_factory=dict)
    cwd: Path | None = None
    keeps: Mapping[str, str] = field(default_factory=dict)
    """Files it writes as it ends, and where each belongs once it is whole."""


@dataclass(frozen=True)
class Server:
    name: str
    address: str
    ports: Mapping[str, int]
    """By the setting that chooses them. The first is the one it serves on."""
    prepare: Callable[[], Awaitable[Launch]]
    """Makes what it needs on disk, once, and says how to start it."""
    ready: Callable[[], Awaitable[None]]
    """Asks it for real work; raises NotReady."""
    depends_on: tuple[str, ...] = ()
    stop_signal: signal.Signals = signal.SIGTERM

    @property
    def port(self) -> int:
        return next(iter(self.ports.values()))


@dataclass(frozen=True)
class Chore:
    """Work between servers: done once what it depends on is ready, before what depends on it starts."""

    name: str
    run: Callable[[], Awaitable[None]]
    depends_on: tuple[str, ...] = ()
