"""Kills the lake's driver at random moments, again and again, while the shop sells.

test_lake_faults.py kills it twice like that, and at each crash point. This is the long version:

    python -m tests.faults.lake_kills 10
"""

import asyncio
import os
import random
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from analytics.lake import LakeFiles
from analytics.log.progress import last_ingested
from infra.cli.render.console import out
from infra.local.stack import up
from infra.local.throwaway import settings_of, throwaway
from infra.settings import Settings
from tests.bench.kit.lake_load import selling
from tests.faults.lake_books import faults
from tests.till import eventually

BATCH = 300
PER_SECOND = 100
DRIVER = [sys.executable, "-m", "tests.faults.lake_driver"]


def main() -> None:
    deaths = int(sys.argv[1]) if sys.argv[1:] else 10
    found = kill_repeatedly(deaths, out.print)
    for fault in found[:20]:
        out.print(fault)
    out.print(f"{deaths} deaths: {len(found)} events lost or duplicated.")
    raise SystemExit(1 if found else 0)


def kill_repeatedly(deaths: int, report: Callable[[str], None] = lambda _line: None) -> list[str]:
    """Kills the driver this many times and returns what was lost or duplicated."""
    with throwaway() as environment:
        asyncio.run(up(settings_of(environment), servers_only=True))
        environment |= {"TILL_LAKE_BATCH_EVENTS": str(BATCH), "PYTHONPATH": str(Path.cwd())}
        settings = settings_of(environment)
        with selling(settings, PER_SECOND):
            dead = 0
            while dead < deaths:
                with driver(environment) as process:
                    dead += _kill_within_a_batch(settings, process)
                report(f"Deaths: {dead} of {deaths}, with batch {_batch(settings)} in bronze.")
        with driver(environment | {"TILL_LAKE_BATCH_EVENTS": str(100 * BATCH)}) as process:
            assert process.wait(600) == 0, "the last driver was not killed and failed"
        return faults(settings)


def _kill_within_a_batch(settings: Settings, process: subprocess.Popen[bytes]) -> bool:
    """Kills the process within a batch after its first one; returns False if it finished before."""
    before = _batch(settings)
    eventually(lambda: _batch(settings) > before, "a batch is in bronze", 600)
    try:
        process.wait(random.uniform(0, 6))
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGKILL)  # Python and its JVM
        return True
    assert process.returncode == 0, "the driver failed by itself"
    return False


@contextmanager
def driver(environment: dict[str, str]) -> Iterator[subprocess.Popen[bytes]]:
    with subprocess.Popen(DRIVER, env=environment, start_new_session=True) as process:
        try:
            yield process
        finally:
            if process.poll() is None:
                os.killpg(process.pid, signal.SIGKILL)


def _batch(settings: Settings) -> int:
    commit = last_ingested(LakeFiles(settings))
    return commit.batch if commit else -1


if __name__ == "__main__":
    main()
