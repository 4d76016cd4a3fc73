"""The Java that runs Kafka, the registry, Spark and Ivy: found and checked, or installed where we may."""

import os
import platform
import re
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

from shared.errors import OperatorError
from shared.settings import Settings

OLDEST = 17
# Spark's own launcher asks for it; the stripped runtimes of some wheels and images lack it.
SPARK_MODULE = "jdk.incubator.vector"

# Not every release has the first; on some, the second is too old. Headless is enough, for Spark too.
DEBIAN_PACKAGES = ("openjdk-17-jre-headless", "default-jre-headless")
ANYWHERE = "Install a JDK 17 or 21, and set TILL_JAVA_HOME to its folder."


@dataclass(frozen=True)
class Java:
    binary: Path
    version: str
    major: int
    source: str


def find_java(settings: Settings) -> Java:
    """The first usable one. A TILL_JAVA_HOME is meant: nothing else is tried when it does not work."""
    refusals = []
    for source, binary in _candidates(settings):
        try:
            return _check(source, binary)
        except _UnusableError as unusable:
            refusals.append(f"{source}: {binary} {unusable}.")
    found = " ".join(refusals) or "none was found in JAVA_HOME or on the PATH."
    hint = "Set TILL_JAVA_HOME to the folder of another." if settings.java_home else installing_command()
    raise OperatorError(f"Java {OLDEST} or newer is needed: {found}", hint)


def install_java(say: Callable[[str], None]) -> bool:
    """Only as root on Debian and its kin: there one command does it, and nobody is asked for a password."""
    if not (_family("debian") and os.geteuid() == 0 and shutil.which("apt-get")):
        return False
    say(f"Java {OLDEST} or newer was not found. Installing it with apt-get.")
    _apt_get("update")
    _apt_get("install", "-y", "--no-install-recommends", _debian_package())
    return True


def installing_command() -> str:
    if sys.platform == "darwin":
        return "brew install --cask temurin@17"
    if _family("debian"):
        return f"sudo apt-get install -y {_debian_package()}"
    if _family("fedora", "rhel"):
        return "sudo dnf install -y java-21-openjdk-headless"
    return ANYWHERE


class _UnusableError(Exception):
    pass


def _candidates(settings: Settings) -> Iterator[tuple[str, Path]]:
    if settings.java_home:
        yield "TILL_JAVA_HOME", settings.java_home / "bin/java"
        return
    if home := os.environ.get("JAVA_HOME"):
        yield "JAVA_HOME", Path(home) / "bin/java"
    if on_path := shutil.which("java"):
        yield "PATH", Path(on_path)


def _check(source: str, binary: Path) -> Java:
    # One short run tells the version, the modules and, behind links and version managers, the real home.
    try:
        ran = subprocess.run(
            [binary, "-XshowSettings:properties", "--list-modules"],
            capture_output=True,
            text=True,
            timeout=30,
        )
    except OSError as failed:
        raise _UnusableError(f"cannot be run ({failed.strerror})") from failed
    except subprocess.TimeoutExpired as stuck:
        raise _UnusableError("does not answer") from stuck
    home = re.search(r"java\.home = (.+)", ran.stderr)
    version = re.search(r"java\.base@((\d+)\S*)", ran.stdout)
    if not home or not version:
        raise _UnusableError(f"is older than Java 9, or broken ({_last_line(ran.stderr)})")
    if int(version[2]) < OLDEST:
        raise _UnusableError(f"is Java {version[1]}")
    if f"{SPARK_MODULE}@" not in ran.stdout:
        raise _UnusableError(f"is a stripped Java {version[1]}: it lacks {SPARK_MODULE}, which Spark needs")
    return Java(Path(home[1]) / "bin/java", version[1], int(version[2]), source)


def _family(*names: str) -> bool:
    try:
        release = platform.freedesktop_os_release()
    except OSError:
        return False
    return not {release["ID"], *release.get("ID_LIKE", "").split()}.isdisjoint(names)


def _apt_get(*arguments: str) -> None:
    environment = os.environ | {"DEBIAN_FRONTEND": "noninteractive"}
    ran = subprocess.run(["apt-get", *arguments], capture_output=True, text=True, env=environment)
    if ran.returncode:
        raise OperatorError(f"apt-get {' '.join(arguments)} failed: {_last_line(ran.stderr)}", ANYWHERE)


def _debian_package() -> str:
    known = (package for package in DEBIAN_PACKAGES if _knows(package))
    return next(known, DEBIAN_PACKAGES[0])


def _knows(package: str) -> bool:
    return subprocess.run(["apt-cache", "show", package], capture_output=True).returncode == 0


def _last_line(text: str) -> str:
    return (text.strip().splitlines() or ["no message"])[-1]
