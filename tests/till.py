"""Runs `till` in a test as a person would, in a home of its own."""

import json
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import psutil
from click.testing import CliRunner

from infra.cli import till

TILL = Path(sys.executable).with_name("till")


@dataclass(frozen=True)
class Ran:
    code: int
    out: str
    err: str

    @property
    def document(self) -> Any:
        return json.loads(self.out)


RunTill = Callable[..., Ran]


def run_in_process(environment: dict[str, str]) -> RunTill:
    """Returns a function that runs `till` in this process: starting another one takes longer than most commands.

    An error that `main` would print is in `err` as its bare message.
    """

    def run(*arguments: str, **settings: str) -> Ran:
        ran = CliRunner().invoke(till, arguments, env=environment | settings)
        return Ran(ran.exit_code, ran.stdout, ran.stderr or str(ran.exception or ""))

    return run


@dataclass(frozen=True)
class Till:
    environment: dict[str, str]

    @property
    def home(self) -> Path:
        return Path(self.environment["TILL_HOME"])

    def __call__(self, *arguments: str, **settings: str) -> Ran:
        with self.begin(*arguments, **settings) as process:
            out, err = process.communicate(timeout=300)
        return Ran(process.returncode, out, err)

    def begin(self, *arguments: str, **settings: str) -> subprocess.Popen[str]:
        return subprocess.Popen(
            [TILL, *arguments],
            env=self.environment | settings,
            cwd=self.home,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )

    def port(self, setting: str) -> int:
        return int(self.environment[setting])


def eventually(condition: Callable[[], Any], what: str, seconds: float = 60) -> Any:
    """Waits until the condition holds, and returns its value."""
    deadline = time.monotonic() + seconds
    while not (held := condition()):
        assert time.monotonic() < deadline, f"After {seconds:g} s still not: {what}"
        time.sleep(0.05)
    return held


def is_there(process: psutil.Process) -> bool:
    """Tells whether a process runs. A zombie does not."""
    try:
        return process.is_running() and process.status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False
