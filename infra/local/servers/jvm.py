"""Starts a Java server fast and small: with flags, and with an archive of its loaded classes (AppCDS).

The first process of a program writes the archive as it ends; later ones map it and start in half the time.
"""

import asyncio
import hashlib
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from threading import Lock

from infra.java.runtime import Java, find_java
from infra.local.servers.server import Launch
from infra.settings import Settings

FLAGS = (
    "-XX:TieredStopAtLevel=1",  # a start takes half the CPU; what it costs later is in ADR 3
    "-XX:+UseSerialGC",  # for small heaps on few cores
    "-XX:+ExitOnOutOfMemoryError",  # a server without memory is better restarted
    "-XX:-UsePerfData",
    "-Xlog:cds=off",
    "-Xlog:cds+dynamic=off",
)

_one_at_a_time = Lock()
_find_java = cache(find_java)


@dataclass(frozen=True)
class Program:
    java: Java
    classpath: Sequence[Path]
    archive: Path

    def command(self, flags: Sequence[str], main: Sequence[str]) -> list[str]:
        shared = [f"-XX:SharedArchiveFile={self.archive}"] if self.archive.exists() else []
        classpath = os.pathsep.join(map(str, self.classpath))
        return [str(self.java.binary), *FLAGS, *shared, *flags, "-classpath", classpath, *main]

    def launch(
        self, version: str, flags: Sequence[str], main: Sequence[str], env: Mapping[str, str] | None = None
    ) -> Launch:
        """Returns how to start it as a server that archives its classes, unless there is an archive."""
        if self.archive.exists():
            return Launch(self.command(flags, main), version, env or {})
        self.archive.parent.mkdir(parents=True, exist_ok=True)
        unfinished = f"{self.archive}.{os.urandom(4).hex()}"
        command = self.command([*flags, f"-XX:ArchiveClassesAtExit={unfinished}"], main)
        return Launch(command, version, env or {}, keeps={unfinished: str(self.archive)})


async def program(settings: Settings, name: str, classpath: Sequence[Path]) -> Program:
    java = await asyncio.to_thread(_java, settings)
    # Java ignores an archive when its jars have changed, so the name depends on them.
    identity = [java.version, str(java.binary.resolve())]
    identity += [f"{jar} {jar.stat().st_size} {jar.stat().st_mtime_ns}" for jar in classpath]
    digest = hashlib.sha256("\n".join(identity).encode()).hexdigest()[:16]
    return Program(java, classpath, settings.cache / "classes" / f"{name}-{digest}.jsa")


def _java(settings: Settings) -> Java:
    """Finds Java once for all servers, because examining a Java means running it."""
    with _one_at_a_time:
        return _find_java(settings)
