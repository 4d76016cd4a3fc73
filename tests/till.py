"""The `till` command in a test: run as a person would, in a home of its own."""

import json
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import psutil

TILL = Path(sys.executable).with_name("till")


@dataclass(frozen=True)
class Ran:
    code: int
    out: str
    err: str

    @property
    def document(self) -> Any:
        return json.loads(self.out)


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
    """What the condition gave once it held."""
    deadline = time.monotonic() + seconds
    while not (held := condition()):
        assert time.monotonic() < deadline, f"After {seconds:g} s still not: {what}"
        time.sleep(0.05)
    return held


def is_there(process: psutil.Process) -> bool:
    """One that waits for its parent to hear of its end is not."""
    try:
        return process.is_running() and process.status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False
