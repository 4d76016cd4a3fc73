"""Finds a Java that can run Kafka, the registry and Spark."""

import os
import re
import shutil
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from infra.java.package import install_command
from infra.settings import Settings
from shared.errors import OperatorError

OLDEST = 17
# Spark's launcher needs it; the stripped runtimes of some wheels and images lack it.
SPARK_MODULE = "jdk.incubator.vector"


@dataclass(frozen=True)
class Java:
    binary: Path
    version: str
    major: int
    source: str


def find_java(settings: Settings) -> Java:
    """Returns the first suitable Java. If TILL_JAVA_HOME is set, nothing else is tried."""
    refusals = []
    for source, binary in _candidates(settings):
        try:
            return _examine(binary, source)
        except _Unsuitable as unsuitable:
            refusals.append(f"{binary} ({source}) {unsuitable}.")
    found = " ".join(refusals) or "none was found in JAVA_HOME or on the PATH."
    hint = "Set TILL_JAVA_HOME to the folder of another." if settings.java_home else install_command()
    raise OperatorError(f"Java {OLDEST} or newer is needed: {found}", hint)


class _Unsuitable(Exception):
    pass


def _candidates(settings: Settings) -> Iterator[tuple[str, Path]]:
    if settings.java_home:
        yield "TILL_JAVA_HOME", settings.java_home / "bin/java"
        return
    if home := os.environ.get("JAVA_HOME"):
        yield "JAVA_HOME", Path(home) / "bin/java"
    if on_path := shutil.which("java"):
        yield "PATH", Path(on_path)


def _examine(binary: Path, source: str) -> Java:
    """Runs it once to learn its version, its modules and its real home, behind links and version managers."""
    try:
        command = [str(binary), "-XshowSettings:properties", "--list-modules"]
        answer = subprocess.run(command, capture_output=True, text=True, timeout=30)
    except OSError as failed:
        raise _Unsuitable(f"cannot be run: {failed.strerror}") from failed
    except subprocess.TimeoutExpired as stuck:
        raise _Unsuitable("does not answer") from stuck
    home = re.search(r"java\.home = (.+)", answer.stderr)
    version = re.search(r"java\.base@((\d+)\S*)", answer.stdout)
    if not home or not version:
        raise _Unsuitable("is older than Java 9, or broken")
    if int(version[2]) < OLDEST:
        raise _Unsuitable(f"is Java {version[1]}")
    if f"{SPARK_MODULE}@" not in answer.stdout:
        raise _Unsuitable(f"is a stripped Java {version[1]}: it lacks {SPARK_MODULE}, which Spark needs")
    return Java(Path(home[1]) / "bin/java", version[1], int(version[2]), source)
