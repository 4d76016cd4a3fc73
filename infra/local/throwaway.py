"""A temporary stack for a test, a benchmark or a trial: in its own folder, on free ports, next to any other."""

import os
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from infra.local.processes.leash import leashed
from infra.local.processes.ports import free_ports
from infra.settings import Settings
from shared.settings import PREFIX

# The only settings of the caller that apply: where things are installed.
INHERITED = {"TILL_CACHE", "TILL_JAVA_HOME"}


@contextmanager
def throwaway(brokers: int = 1) -> Iterator[dict[str, str]]:
    """Yields the environment for `till` in a new home. Everything that runs there ends with this block or process."""
    home = Path(tempfile.mkdtemp(prefix="till-"))
    with leashed(home):
        yield {name: value for name, value in os.environ.items() if _is_inherited(name)} | {
            "TILL_HOME": str(home),
            "TILL_KAFKA_BROKERS": str(brokers),
            **{f"{PREFIX}{name.upper()}": str(port) for name, port in _ports(brokers).items()},
        }


def _ports(brokers: int) -> dict[str, int]:
    """Chooses a free port for every port setting, followed by free ports for the other brokers."""
    names = [name for name in Settings.model_fields if name.endswith("_port")]
    free = free_ports(brokers * len(names))
    return dict(zip(names, free[::brokers], strict=True))


def settings_of(environment: Mapping[str, str]) -> Settings:
    """Returns the settings of that environment, whatever the environment of this process says."""
    ours = {name: value for name, value in environment.items() if name.startswith(PREFIX)}
    return Settings.load(**{name.removeprefix(PREFIX).lower(): value for name, value in ours.items()})


def _is_inherited(name: str) -> bool:
    return not name.startswith(PREFIX) or name in INHERITED
