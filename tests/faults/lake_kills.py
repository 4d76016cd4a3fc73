"""The long version of the lake's death: its driver killed at any moment, again and again, while the shop sells.

python -m tests.faults.lake_kills 10
"""

import asyncio
import os
import random
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from analytics.commits import ingested
from infra.cli.console import out
from infra.local.stack import up
from infra.local.throwaway import settings_of, throwaway
from shared.settings import Settings
from tests.bench.lake_load import selling
from tests.faults.lake_books import faults
from tests.till import eventually

BATCH = 300
PER_SECOND = 100
DRIVER = [sys.executable, "-m", "tests.faults.lake_driver"]


def main() -> None:
    deaths = int(sys.argv[1]) if sys.argv[1:] else 10
    with throwaway() as environment:
        asyncio.run(up(settings_of(environment), servers_only=True))
        environment |= {"TILL_LAKE_BATCH_EVENTS": str(BATCH), "PYTHONPATH": str(Path.cwd())}
        settings = settings_of(environment)
        with selling(settings, PER_SECOND):
            for n in range(deaths):
                with driver(environment) as process:
                    _die(settings, process)
                out.print(f"Death {n + 1} of {deaths}, with batch {_batch(settings)} in bronze.")
        with driver(environment) as process:
            assert process.wait(1800) == 0, "the last one was to finish"
        found = faults(settings)
    for fault in found[:20]:
        out.print(fault)
    out.print(f"{deaths} deaths: {len(found)} events lost or there twice.")
    raise SystemExit(1 if found else 0)


def _die(settings: Settings, process: subprocess.Popen[bytes]) -> None:
    """Somewhere within a batch that follows one of its own."""
    before = _batch(settings)
    eventually(lambda: _batch(settings) > before, "it has got somewhere", 600)
    try:
        process.wait(random.uniform(0, 6))
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGKILL)  # Python and its JVM


@contextmanager
def driver(environment: dict[str, str]) -> Iterator[subprocess.Popen[bytes]]:
    with subprocess.Popen(DRIVER, env=environment, start_new_session=True) as process:
        try:
            yield process
        finally:
            if process.poll() is None:
                os.killpg(process.pid, signal.SIGKILL)


def _batch(settings: Settings) -> int:
    commit = ingested(settings)
    return commit.batch if commit else -1


if __name__ == "__main__":
    main()
