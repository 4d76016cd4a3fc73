"""Fetching with the Ivy of the pyspark wheel: no Maven to install, no host to name (Ivy knows Central)."""

import re
import subprocess
from collections.abc import Callable, Sequence
from contextlib import suppress
from importlib.util import find_spec
from pathlib import Path
from time import monotonic
from xml.sax.saxutils import quoteattr

from infra.jars.lock import Artifact
from infra.java import Java
from shared.errors import OperatorError

# No checksum requests and no POMs: the lock knows every file and its content. Conflict manager "all",
# because two bundles may hold two versions of one module.
SETTINGS = """<ivysettings>
  <settings defaultResolver="root" defaultConflictManager="all"/>
  <caches artifactPattern="[artifact]-[revision](-[classifier]).[ext]"/>
  <timeout-constraints><timeout-constraint name="patience" connectionTimeout="20000" readTimeout="30000"/>
  </timeout-constraints>
  <resolvers>
    <ibiblio name="root" m2compatible="true" usepoms="false" checksums="" timeoutConstraint="patience"{root}/>
  </resolvers>
</ivysettings>
"""
MODULE = """<ivy-module version="2.0" xmlns:m="http://ant.apache.org/ivy/maven">
  <info organisation="till" module="jars"/>
  <dependencies>
{dependencies}
  </dependencies>
</ivy-module>
"""

SILENCE = 60
SILENT = f"the repository did not answer for {SILENCE} s"
REASONS = (
    SILENT,
    r"No space left on device",
    r"Server access error at .*",
    r"Host \S+ not found.*",
    r"(?<=\[FAILED     \] ).*",
    r"\S+: not found",
)


def ivy_jar() -> Path:
    spark = find_spec("pyspark")
    if not spark or not spark.origin:
        raise OperatorError("The Python package pyspark is missing; Ivy comes with it.", "make install")
    return next((Path(spark.origin).parent / "jars").glob("ivy-*.jar"))


def fetch(
    java: Java,
    artifacts: Sequence[Artifact],
    folder: Path,
    root: str = "",
    hold: Sequence[int] = (),
    tick: Callable[[], None] = lambda: None,
) -> str:
    """Leave what could be fetched in `folder`, whole files under their final names, and return Ivy's log.

    Ivy inherits the descriptors to `hold`: should we be killed, our file lock lasts until Ivy has ended too.
    """
    from infra.jars.network import network_options  # its cryptography costs each `till up` 0.1 s otherwise

    settings, module, log = folder / "settings.xml", folder / "module.xml", folder / "ivy.log"
    settings.write_text(SETTINGS.format(root=f" root={quoteattr(root)}" if root else ""))
    module.write_text(MODULE.format(dependencies="\n".join(map(_dependency, artifacts))))
    options = ["-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC", *network_options(folder), "-jar", ivy_jar()]
    command = [java.binary, *options, "-settings", settings, "-ivy", module, "-cache", folder]
    with (
        log.open("wb") as output,
        subprocess.Popen(
            [str(word) for word in command],
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=output,
            pass_fds=hold,
        ) as process,
    ):
        try:
            _watch(process, log, tick)
        finally:
            process.kill()
    return log.read_text(errors="replace")


def reason(log: str) -> str:
    """The one line of Ivy's log that says why something is missing."""
    found = (re.search(pattern, log) for pattern in REASONS)
    return next((match[0] for match in found if match), f"Ivy says: {log.strip()[-500:]}")


def _watch(process: subprocess.Popen[bytes], log: Path, tick: Callable[[], None]) -> None:
    # Ivy reports every step. Without this limit it would wait for each of a hundred files in turn.
    written, since = -1, 0.0
    while process.poll() is None:
        tick()
        if (size := log.stat().st_size) != written:
            written, since = size, monotonic()
        elif monotonic() - since > SILENCE:
            with log.open("a") as file:
                file.write(f"{SILENT}")
            return
        with suppress(subprocess.TimeoutExpired):
            process.wait(timeout=0.2)


def _dependency(a: Artifact) -> str:
    classifier = f" m:classifier={quoteattr(a.classifier)}" if a.classifier else ""
    name, kind = quoteattr(a.name), quoteattr(a.extension or "jar")
    return (
        f"    <dependency org={quoteattr(a.group)} name={name} rev={quoteattr(a.version)} transitive='false'>"
        f"<artifact name={name} type={kind} ext={kind}{classifier}/></dependency>"
    )
