"""The servers' own logs: one file each, the previous run's kept beside it, and what in them tells why."""

import re
import time
from collections import deque
from collections.abc import Iterator, Mapping
from pathlib import Path

from infra.local.home import log_folder

PREVIOUS = ".previous.log"
TELLING = re.compile(
    r"\b(ERROR|FATAL|PANIC|SEVERE|CRITICAL)\b|Exception\b|Error\b|Caused by|No space left|[Cc]annot|[Cc]ould not"
)
STACK_FRAME = re.compile(r"^\s+(at |\.\.\. \d+ more)")


def log_file(home: Path, name: str) -> Path:
    return log_folder(home) / f"{name}.log"


def log_files(home: Path) -> dict[str, Path]:
    files = (file for file in sorted(log_folder(home).glob("*.log")) if not file.name.endswith(PREVIOUS))
    return {file.stem: file for file in files}


def begin(home: Path, name: str) -> Path:
    """An empty log for a new process. That of the process before it is kept as `<name>.previous.log`."""
    file = log_file(home, name)
    if file.exists() and file.stat().st_size:
        file.replace(file.with_suffix(PREVIOUS))
    file.touch()
    return file


def last_lines(file: Path, count: int) -> list[str]:
    with file.open(errors="replace") as lines:
        return [line.rstrip("\n") for line in deque(lines, count)]


def telling_lines(file: Path, count: int = 6) -> list[str]:
    """The last lines that look like a reason; where none do, the last lines. Stack frames are left out."""
    if not file.exists():
        return []
    lines = [line for line in last_lines(file, 400) if line.strip() and not STACK_FRAME.match(line)]
    return ([line for line in lines if TELLING.search(line)] or lines)[-count:]


def follow(files: Mapping[str, Path]) -> Iterator[tuple[str, str]]:
    """Complete lines as they are written, with the name of who wrote them, over restarts. Never ends."""
    read = {name: file.stat().st_size for name, file in files.items()}
    while True:
        for name, file in files.items():
            size = file.stat().st_size if file.exists() else 0
            if size < read[name]:
                read[name] = 0  # a new process began a new log
            if size > read[name]:
                with file.open("rb") as stream:
                    stream.seek(read[name])
                    written = stream.read()
                complete = written[: written.rfind(b"\n") + 1]
                read[name] += len(complete)
                yield from ((name, line) for line in complete.decode(errors="replace").splitlines())
        time.sleep(0.2)
