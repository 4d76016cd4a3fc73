"""The Java that runs Kafka, the registry, Spark and Ivy: found where the user has it, and fit for all four."""

import os
import re
import shutil
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from infra.java_package import installing_command
from shared.errors import OperatorError
from shared.settings import Settings

OLDEST = 17
# Spark's launcher asks for it; the stripped runtimes of some wheels and images lack it.
SPARK_MODULE = "jdk.incubator.vector"


@dataclass(frozen=True)
class Java:
    binary: Path
    version: str
    major: int
    source: str


def find_java(settings: Settings) -> Java:
    """The first that is fit. A TILL_JAVA_HOME is meant: where it is set, nothing else is tried."""
    refusals = []
    for source, binary in _candidates(settings):
        try:
            return _examine(binary, source)
        except _UnfitError as unfit:
            refusals.append(f"{binary} ({source}) {unfit}.")
    found = " ".join(refusals) or "none was found in JAVA_HOME or on the PATH."
    hint = "Set TILL_JAVA_HOME to the folder of another." if settings.java_home else installing_command()
    raise OperatorError(f"Java {OLDEST} or newer is needed: {found}", hint)


class _UnfitError(Exception):
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
    """One short run tells the version, the modules and, behind links and version managers, the real home."""
    try:
        command = [str(binary), "-XshowSettings:properties", "--list-modules"]
        said = subprocess.run(command, capture_output=True, text=True, timeout=30)
    except OSError as failed:
        raise _UnfitError(f"cannot be run: {failed.strerror}") from failed
    except subprocess.TimeoutExpired as stuck:
        raise _UnfitError("does not answer") from stuck
    home = re.search(r"java\.home = (.+)", said.stderr)
    version = re.search(r"java\.base@((\d+)\S*)", said.stdout)
    if not home or not version:
        raise _UnfitError("is older than Java 9, or broken")
    if int(version[2]) < OLDEST:
        raise _UnfitError(f"is Java {version[1]}")
    if f"{SPARK_MODULE}@" not in said.stdout:
        raise _UnfitError(f"is a stripped Java {version[1]}: it lacks {SPARK_MODULE}, which Spark needs")
    return Java(Path(home[1]) / "bin/java", version[1], int(version[2]), source)
