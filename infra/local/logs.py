"""The servers' own logs: one file each, the previous run's kept beside it, and what in them tells why."""

import re
import time
from collections import deque
from collections.abc import Iterator
from pathlib import Path

from infra.local.home import log_folder

TELLING = re.compile(
    r"\b(ERROR|FATAL|PANIC|SEVERE|CRITICAL)\b|Exception\b|Error\b|Caused by|No space left|[Cc]annot|[Cc]ould not"
)
STACK_FRAME = re.compile(r"^\s+(at |\.\.\. \d+ more)")


def log_file(home: Path, name: str) -> Path:
    return log_folder(home) / f"{name}.log"


def begin(home: Path, name: str) -> Path:
    """An empty log for a new process. That of the process before it is kept as `<name>.previous.log`."""
    file = log_file(home, name)
    if file.exists() and file.stat().st_size:
        file.replace(file.with_suffix(".previous.log"))
    file.touch()
    return file


def last_lines(file: Path, count: int) -> list[str]:
    if not file.exists():
        return []
    with file.open(errors="replace") as lines:
        return [line.rstrip("\n") for line in deque(lines, count)]


def telling_lines(file: Path, count: int = 6) -> list[str]:
    """The last lines that look like a reason; where none do, the last lines. Stack frames are left out."""
    lines = [line for line in last_lines(file, 400) if line.strip() and not STACK_FRAME.match(line)]
    return ([line for line in lines if TELLING.search(line)] or lines)[-count:]


def follow(file: Path) -> Iterator[str]:
    """Lines as they are written, over restarts of the process."""
    position = file.stat().st_size if file.exists() else 0
    while True:
        size = file.stat().st_size if file.exists() else 0
        if size < position:
            position = 0
        if size > position:
            with file.open("rb") as stream:
                stream.seek(position)
                written = stream.read()
            complete = written[: written.rfind(b"\n") + 1]
            position += len(complete)
            yield from complete.decode(errors="replace").splitlines()
        time.sleep(0.2)
