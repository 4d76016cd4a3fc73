"""A stack of its own, for a test, a bench or a trial run: in a folder of its own, on free ports, beside any other."""

import os
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from infra.local.leash import leashed
from infra.local.ports import free_ports
from shared.settings import PREFIX, Settings

# Of the caller's own settings, only where things were installed.
INHERITED = {"TILL_CACHE", "TILL_JAVA_HOME"}


@contextmanager
def throwaway(brokers: int = 1) -> Iterator[dict[str, str]]:
    """The environment for `till` in a new home. What runs there ends with this block or this process."""
    home = Path(tempfile.mkdtemp(prefix="till-"))
    with leashed(home):
        yield {name: value for name, value in os.environ.items() if _is_inherited(name)} | {
            "TILL_HOME": str(home),
            "TILL_KAFKA_BROKERS": str(brokers),
            **{f"{PREFIX}{name.upper()}": str(port) for name, port in _ports(brokers).items()},
        }


def _ports(brokers: int) -> dict[str, int]:
    """One for every setting of a port. Those of Kafka are each followed by as many as there are more brokers."""
    names = [name for name in Settings.model_fields if name.endswith("_port")]
    free = free_ports(brokers * len(names))
    return dict(zip(names, free[::brokers], strict=True))


def settings_of(environment: Mapping[str, str]) -> Settings:
    """The same in this process, whatever its own environment says."""
    ours = {name: value for name, value in environment.items() if name.startswith(PREFIX)}
    return Settings.load(**{name.removeprefix(PREFIX).lower(): value for name, value in ours.items()})


def _is_inherited(name: str) -> bool:
    return not name.startswith(PREFIX) or name in INHERITED
