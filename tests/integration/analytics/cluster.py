"""Starts a standalone Spark cluster from the wheel: one master, two workers, as processes that end with the block."""

import os
import subprocess
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import pyspark

from infra.java.runtime import find_java
from infra.local.processes.ports import free_ports, is_open
from infra.settings import Settings
from shared.settings import HOST
from tests.till import eventually

HOME = Path(pyspark.__file__).parent
DEPLOY = "org.apache.spark.deploy"


@contextmanager
def spark_cluster(settings: Settings, folder: Path, workers: int = 2) -> Iterator[str]:
    """Starts a cluster and yields its address once all workers have joined."""
    port, web, *rest = free_ports(2 + 2 * workers)
    with ExitStack() as stack:
        log = folder / "master.log"
        at = ["--host", HOST, "--port", str(port), "--webui-port", str(web)]
        stack.enter_context(_process(settings, log, f"{DEPLOY}.master.Master", at))
        eventually(lambda: is_open(port), "the master listens", 60)
        for n in range(workers):
            at = ["--host", HOST, "--port", str(rest[2 * n]), "--webui-port", str(rest[2 * n + 1])]
            room = ["--cores", "1", "--memory", "1g", "--work-dir", str(folder / f"work-{n}")]
            worker = [*at, *room, f"spark://{HOST}:{port}"]
            stack.enter_context(_process(settings, folder / f"worker-{n}.log", f"{DEPLOY}.worker.Worker", worker))
        eventually(lambda: log.read_text().count("Registering worker") == workers, "the workers have joined", 60)
        yield f"spark://{HOST}:{port}"


@contextmanager
def _process(settings: Settings, log: Path, main: str, arguments: list[str]) -> Iterator[None]:
    java = find_java(settings).binary
    environment = os.environ | {
        "SPARK_HOME": str(HOME),
        "SPARK_SCALA_VERSION": "2.13",
        "JAVA_HOME": str(java.parents[1]),
    }
    command = [str(java), "-Xmx256m", "-XX:TieredStopAtLevel=1", "-cp", f"{HOME}/jars/*", main, *arguments]
    with log.open("w") as out, subprocess.Popen(command, env=environment, stdout=out, stderr=out) as process:
        try:
            yield
        finally:
            process.terminate()
            process.wait(20)
