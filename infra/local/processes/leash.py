"""Stops the stack of a home and deletes the home as soon as its owner ends, even if the owner is killed.

Run as `python -m infra.local.processes.leash HOME`. The owner holds the other end of standard input, which the kernel
closes however the owner ends.
"""

import asyncio
import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import psutil

from infra.local.stop import down


@contextmanager
def leashed(home: Path) -> Iterator[None]:
    """Ends everything that is started in this home together with this block, or with this process."""
    command = [sys.executable, "-m", "infra.local.processes.leash", str(home)]
    # A session of its own: Ctrl-C in the terminal must not end it before its work is done.
    with subprocess.Popen(command, stdin=subprocess.PIPE, start_new_session=True):
        yield


def main() -> None:
    for sign in (signal.SIGINT, signal.SIGHUP, signal.SIGTERM):
        signal.signal(sign, signal.SIG_IGN)
    while os.read(sys.stdin.fileno(), 4096):
        pass
    home = Path(sys.argv[1])
    asyncio.run(down(home))
    _end_the_rest(home)
    shutil.rmtree(home, ignore_errors=True)


def _end_the_rest(home: Path) -> None:
    """Kills processes that a test started in this home by itself and did not stop."""
    for process in psutil.process_iter():
        with suppress(psutil.Error):
            if process.pid != os.getpid() and process.environ().get("TILL_HOME") == str(home):
                process.kill()


if __name__ == "__main__":
    main()
