"""Starts processes of the shop for a benchmark, and measures the CPU that they and the servers use."""

import os
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager

import httpx
import psutil

from infra.local.processes.process import recorded
from infra.settings import Settings
from shared.settings import HOST

START_SECONDS, STOP_SECONDS = 60.0, 20.0

Parts = Mapping[str, str]
"""The part to start of each service: `{"cart": "worker"}`."""


class Busy:
    """The CPU time that each process has used since the start. Unlike a rate, it does not depend on other work."""

    def __init__(self, processes: Mapping[str, psutil.Process]) -> None:
        self._processes = processes
        self._before = self._used()

    def seconds(self) -> dict[str, float]:
        return {name: used - self._before[name] for name, used in self._used().items()}

    def _used(self) -> dict[str, float]:
        return {name: _cpu(process) for name, process in self._processes.items()}


@contextmanager
def started(settings: Settings, parts: Parts, **more: str) -> Iterator[dict[str, psutil.Process]]:
    """Starts these processes, and yields them and the servers by name once they are ready."""
    environment = os.environ | settings.environment() | {"TILL_LOG_LEVEL": "ERROR"} | more
    with ExitStack() as stack:
        own = {name: stack.enter_context(_process(name, part, environment)) for name, part in parts.items()}
        for name, process in own.items():
            _until_ready(getattr(settings, f"{name}_port"), process)
        servers = {server.name: psutil.Process(server.pid) for server in recorded(settings.home)}
        yield {name: psutil.Process(process.pid) for name, process in own.items()} | servers


@contextmanager
def _process(name: str, part: str, environment: Mapping[str, str]) -> Iterator[subprocess.Popen[bytes]]:
    process = subprocess.Popen([sys.executable, "-m", f"services.{name}", *filter(None, [part])], env=environment)
    try:
        yield process
    finally:
        process.terminate()
        process.wait(STOP_SECONDS)


def _until_ready(port: int, process: subprocess.Popen[bytes]) -> None:
    deadline = time.monotonic() + START_SECONDS
    while time.monotonic() < deadline and process.poll() is None:
        try:
            if httpx.get(f"http://{HOST}:{port}/healthz").is_success:
                return
        except httpx.TransportError:
            time.sleep(0.05)
    raise RuntimeError(f"{process.args!r} did not start")


def _cpu(process: psutil.Process) -> float:
    """Returns the CPU time of a process and its descendants: PostgreSQL is a family of processes."""
    family = [process, *process.children(recursive=True)]
    return sum(sum(member.cpu_times()[:2]) for member in family)
