"""The logs of the processes: one file each, the previous one next to it, and the lines that tell why one failed."""

import re
import time
from collections import deque
from collections.abc import Iterator, Mapping
from itertools import pairwise
from pathlib import Path

from infra.local.home import log_folder

PREVIOUS = ".previous.log"
REASON = re.compile(
    r"\b(ERROR|FATAL|PANIC|SEVERE|CRITICAL)\b|Exception\b|Error\b|Caused by|No space left|[Cc]annot|[Cc]ould not"
)
STACK_FRAME = re.compile(r"^\s+(at |\.\.\. \d+ more)")


def log_file(home: Path, name: str) -> Path:
    return log_folder(home) / f"{name}.log"


def log_files(home: Path) -> dict[str, Path]:
    files = (file for file in sorted(log_folder(home).glob("*.log")) if not file.name.endswith(PREVIOUS))
    return {file.stem: file for file in files}


def begin(home: Path, name: str) -> Path:
    """Creates an empty log for a new process. The last one is kept as `<name>.previous.log`."""
    file = log_file(home, name)
    if file.exists() and file.stat().st_size:
        file.replace(file.with_suffix(PREVIOUS))
    file.touch()
    return file


def likely_reasons(file: Path, count: int = 6) -> list[str]:
    """Returns the last lines that look like a reason, each with the line after it, or else simply the last lines."""
    if not file.exists():
        return []
    last = [line for _, line in tail({file.stem: file}, 400)]
    lines = [line for line in last if line.strip() and not STACK_FRAME.match(line)]
    reasons = [b for a, b in pairwise(["", *lines]) if REASON.search(a) or REASON.search(b)]
    return (reasons or lines)[-count:]


def tail(files: Mapping[str, Path], count: int, follow: bool = False) -> Iterator[tuple[str, str]]:
    """Yields the last lines of each log with its name; then, if following, every new line, even after restarts."""
    read = {}
    for name, file in files.items():
        with file.open("rb") as stream:
            yield from _named(name, b"".join(deque(stream, count)))
            read[name] = stream.tell()
    while follow:
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
                yield from _named(name, complete)
        time.sleep(0.2)


def _named(name: str, text: bytes) -> Iterator[tuple[str, str]]:
    return ((name, line) for line in text.decode(errors="replace").splitlines())
