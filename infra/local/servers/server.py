"""The description of a server: how it is started, when it is ready, and what stops it.

Kafka, the registry, PostgreSQL and the services of the shop describe themselves in their own modules.
"""

import signal
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field


class NotReady(Exception):
    """The server runs, but did not do what was asked of it. It may do so later."""


@dataclass(frozen=True)
class Launch:
    command: list[str]
    version: str
    env: Mapping[str, str] = field(default_factory=dict)
    keeps: Mapping[str, str] = field(default_factory=dict)
    """Files that it writes as it ends, and where each belongs once it is complete."""


@dataclass(frozen=True)
class Server:
    name: str
    address: str
    ports: Mapping[str, int]
    """The ports by the setting that chooses them. The first is the one it serves on."""
    prepare: Callable[[], Awaitable[Launch]]
    """Creates what it needs on disk, once, and returns how to start it."""
    ready: Callable[[], Awaitable[None]]
    """Tests it with real work, and raises NotReady if that fails."""
    depends_on: tuple[str, ...] = ()
    stop_signal: signal.Signals = signal.SIGTERM

    @property
    def port(self) -> int:
        return next(iter(self.ports.values()))


@dataclass(frozen=True)
class Chore:
    """Work that is done after the servers it depends on are ready, and before those that depend on it start."""

    name: str
    run: Callable[[], Awaitable[None]]
    depends_on: tuple[str, ...] = ()
