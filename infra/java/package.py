"""Knows the command that installs Java on this system, and runs it where no confirmation is needed."""

import os
import platform
import subprocess
import sys
from collections.abc import Callable

from shared.errors import OperatorError

# Not every release has the first, and in some the second is too old. Headless is enough, even for Spark.
DEBIAN_PACKAGES = ("openjdk-17-jre-headless", "default-jre-headless")
ANYWHERE = "Install a JDK 17 or 21, and set TILL_JAVA_HOME to its folder."


def install_command() -> str:
    if sys.platform == "darwin":
        return "brew install --cask temurin@17"
    if _is("debian"):
        return f"sudo apt-get install -y {_debian_package()}"
    if _is("fedora") or _is("rhel"):
        return "sudo dnf install -y java-21-openjdk-headless"
    return ANYWHERE


def install_java(say: Callable[[str], None]) -> bool:
    """Installs Java if this is root on Debian or a derivative. Returns False otherwise."""
    if not _is("debian") or os.geteuid() != 0:
        return False
    say("Java 17 or newer was not found. Installing it with apt-get.")
    _apt_get("update")
    _apt_get("install", "-y", "--no-install-recommends", _debian_package())
    return True


def _is(system: str) -> bool:
    try:
        release = platform.freedesktop_os_release()
    except OSError:
        return False
    return system in (release["ID"], *release.get("ID_LIKE", "").split())


def _debian_package() -> str:
    known = (name for name in DEBIAN_PACKAGES if _run("apt-cache", "show", name).returncode == 0)
    return next(known, DEBIAN_PACKAGES[0])


def _apt_get(*arguments: str) -> None:
    ran = _run("apt-get", *arguments)
    if ran.returncode:
        lines = ran.stderr.strip().splitlines() or ["no reason was given"]
        raise OperatorError(f"apt-get {' '.join(arguments)} failed: {lines[-1]}", ANYWHERE)


def _run(*command: str) -> subprocess.CompletedProcess[str]:
    environment = os.environ | {"DEBIAN_FRONTEND": "noninteractive"}
    try:
        return subprocess.run(command, capture_output=True, text=True, env=environment)
    except FileNotFoundError as missing:
        return subprocess.CompletedProcess(command, 127, "", str(missing))
