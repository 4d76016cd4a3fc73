"""How a Java server is started fast and small: its flags, and an archive of its loaded classes (AppCDS).

The first process of its kind writes the archive as it ends; all later ones map it. Kafka then starts in half
the time. The archive lives in the cache, for one Java and one exact classpath.
"""

import hashlib
import os
from collections.abc import Sequence
from pathlib import Path

from infra.java import Java
from infra.local.server import Launch
from shared.settings import Settings

FLAGS = (
    "-XX:+UseSerialGC",  # two cores and small heaps: the other collectors' threads cost more than they save
    "-XX:+ExitOnOutOfMemoryError",  # a broker that lives on without memory serves nobody
    "-XX:-UsePerfData",
    "-Xlog:cds=off",
    "-Xlog:cds+dynamic=off",
)
# Without the optimising compiler a start takes half the CPU, and busy code a third more of it for ever.
SHORT_LIVED = ("-XX:TieredStopAtLevel=1",)


def launch(
    settings: Settings,
    java: Java,
    name: str,
    version: str,
    classpath: Sequence[Path],
    flags: Sequence[str],
    main: Sequence[str],
    env: dict[str, str] | None = None,
) -> Launch:
    archive = archive_file(settings, java, name, classpath)
    if archive.exists():
        return Launch(tool(settings, java, name, classpath, flags, main), version, env or {})
    archive.parent.mkdir(parents=True, exist_ok=True)
    unfinished = f"{archive}.{os.urandom(4).hex()}"
    recording = [*flags, f"-XX:ArchiveClassesAtExit={unfinished}"]
    command = tool(settings, java, name, classpath, recording, main)
    return Launch(command, version, env or {}, keeps={unfinished: str(archive)})


def tool(
    settings: Settings,
    java: Java,
    name: str,
    classpath: Sequence[Path],
    flags: Sequence[str],
    main: Sequence[str],
) -> list[str]:
    """The command alone: uses the archive if it is there, writes none."""
    archive = archive_file(settings, java, name, classpath)
    shared = [f"-XX:SharedArchiveFile={archive}"] if archive.exists() else []
    joined = os.pathsep.join(map(str, classpath))
    return [str(java.binary), *FLAGS, *shared, *flags, "-classpath", joined, *main]


def archive_file(settings: Settings, java: Java, name: str, classpath: Sequence[Path]) -> Path:
    # Java ignores an archive whose jars were touched since: then it is a new one that is wanted.
    identity = [java.version, str(java.binary.resolve())]
    identity += [f"{jar} {jar.stat().st_size} {jar.stat().st_mtime_ns}" for jar in classpath]
    digest = hashlib.sha256("\n".join(identity).encode()).hexdigest()[:16]
    return settings.cache / "classes" / f"{name}-{digest}.jsa"
