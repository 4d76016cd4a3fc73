"""Detached processes and their run files. A process is identified by its pid and its start time, as pids are reused."""

import asyncio
import atexit
import os
import signal
import subprocess
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from pathlib import Path

import orjson
import psutil

from infra.local.home import log_folder, run_folder, write_whole
from infra.local.processes import logs
from infra.local.servers.server import Launch, Server

GRACE = 10.0
# The first stop after an installation also writes a class archive (see jvm.py).
GRACE_TO_WRITE = 45.0

# Children of this process have to be waited for, or they stay zombies as long as it lives.
_children: dict[int, subprocess.Popen[bytes]] = {}


@atexit.register
def _reap_children() -> None:
    for child in _children.values():
        child.poll()


@dataclass(frozen=True)
class Process:
    name: str
    pid: int
    born: float
    since: str
    version: str
    address: str
    ports: dict[str, int]
    depends_on: list[str]
    stop_signal: int
    keeps: dict[str, str]

    def is_alive(self) -> bool:
        if child := _children.get(self.pid):
            child.poll()
        try:
            return abs(_born(process := psutil.Process(self.pid)) - self.born) < 0.05 and (
                process.status() != psutil.STATUS_ZOMBIE
            )
        except psutil.NoSuchProcess:
            return False

    def ending(self) -> str:
        """Says how it ended, if it is a child of this process."""
        code = child.returncode if (child := _children.get(self.pid)) else None
        if code is None:
            return ""
        return f" ({signal.Signals(-code).name})" if code < 0 else f" (exit code {code})"

    def memory(self) -> int:
        """Returns the resident bytes of the process and its descendants."""
        return sum(_resident(process) for process in self._family())

    async def stop(self, keep: bool = True) -> bool:
        """Stops it with its signal, or by force when it takes too long. Returns False if it was not running."""
        if not self.is_alive():
            return False
        family = self._family()
        # A paused process receives its signal only when it continues.
        for sign in (signal.Signals(self.stop_signal), signal.SIGCONT):
            with suppress(ProcessLookupError):
                os.kill(self.pid, sign)
        try:
            async with asyncio.timeout(GRACE_TO_WRITE if self.keeps and keep else GRACE):
                await self._ended()
        except TimeoutError:
            keep = False
            for process in [*self._family(), *family]:
                with suppress(psutil.NoSuchProcess):
                    process.kill()
            await self._ended()
        self._put_in_place(keep)
        return True

    async def _ended(self) -> None:
        while self.is_alive():
            await asyncio.sleep(0.02)

    def _put_in_place(self, keep: bool) -> None:
        for written, place in self.keeps.items():
            with suppress(FileNotFoundError):
                Path(written).replace(place) if keep else Path(written).unlink()

    def _family(self) -> list[psutil.Process]:
        if not self.is_alive():
            return []
        with suppress(psutil.NoSuchProcess):
            process = psutil.Process(self.pid)
            return [process, *process.children(recursive=True)]
        return []


def spawn(home: Path, server: Server, launch: Launch) -> Process:
    """Starts a process in its own session, so that neither Ctrl-C nor the end of this process ends it."""
    with logs.begin(home, server.name).open("ab") as log:
        child = subprocess.Popen(
            launch.command,
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=subprocess.STDOUT,
            cwd=log_folder(home),
            env=os.environ | dict(launch.env),
            start_new_session=True,
        )
    _children[child.pid] = child
    process = Process(
        name=server.name,
        pid=child.pid,
        born=_born(psutil.Process(child.pid)),
        since=datetime.now(UTC).isoformat(timespec="seconds"),
        version=launch.version,
        address=server.address,
        ports=dict(server.ports),
        depends_on=list(server.depends_on),
        stop_signal=server.stop_signal,
        keeps=dict(launch.keeps),
    )
    write_whole(_run_file(home, server.name), orjson.dumps(asdict(process), option=orjson.OPT_INDENT_2).decode())
    return process


def recorded(home: Path) -> Iterator[Process]:
    """Yields the recorded processes, alive or not. A run file that cannot be read is skipped."""
    for file in sorted(run_folder(home).glob("*.json")):
        with suppress(orjson.JSONDecodeError, TypeError):
            yield Process(**orjson.loads(file.read_bytes()))


def forget(home: Path, name: str) -> None:
    _run_file(home, name).unlink(missing_ok=True)


def _run_file(home: Path, name: str) -> Path:
    return run_folder(home) / f"{name}.json"


def _born(process: psutil.Process) -> float:
    """Returns the start time in seconds since boot, which does not change when the clock is set."""
    return process.create_time() - psutil.boot_time()


def _resident(process: psutil.Process) -> int:
    """Returns resident bytes. Shared pages count in parts where possible: PostgreSQL's processes share most pages."""
    with suppress(psutil.NoSuchProcess):
        try:
            return int(process.memory_full_info().pss)
        except (AttributeError, psutil.AccessDenied):
            return int(process.memory_info().rss)
    return 0
