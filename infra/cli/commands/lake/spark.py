"""Opens the lake for a command, after checks that need no Spark: one writer at a time, Spark's output in a log."""

import asyncio
import os
import sys
import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from filelock import FileLock, Timeout

from infra.cli.render.console import err
from infra.local.home import log_folder, run_folder, writable
from infra.local.processes.logs import begin
from infra.settings import Settings
from shared.errors import OperatorError

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from analytics.lake import Lake

LOG = "lake"

Watch = Callable[[str, str], None]
"""Called with a step and its state, to show progress."""


def require_kafka(settings: Settings) -> None:
    """Checks that Kafka answers. Spark would take ten seconds to find out."""
    from shared.messaging.kafka import open_admin

    async def ask() -> None:
        async with open_admin(settings) as admin:
            await admin.describe_cluster()

    asyncio.run(ask())


def require_lake(settings: Settings) -> list[str]:
    """Returns the names of the lake's tables. Without tables, raises an error that says how to fill the lake."""
    from analytics.lake import LakeFiles

    return LakeFiles(settings).require_tables()


@contextmanager
def open_lake(settings: Settings, watch: Watch) -> Iterator["Lake"]:
    """Opens the lake with a Spark session that ends with the block."""
    from analytics.lake import Lake

    watch("Spark", "starting")
    with open_logged_spark(settings) as spark:
        watch("Spark", "ready")
        yield Lake(spark, settings)


@contextmanager
def open_logged_spark(settings: Settings) -> Iterator["SparkSession"]:
    """Opens a session that ends with the block. Missing Java or jars are reported before Spark is imported.

    What Spark prints goes to `till logs lake`.
    """
    from infra.jars.bundles import jars
    from infra.java.runtime import find_java

    find_java(settings)
    jars(settings, "spark")
    with _stderr_to_log(settings.home) as log:
        from py4j.protocol import Py4JError  # type: ignore[import-untyped]
        from pyspark.errors import PySparkException

        from infra.lake.spark import open_spark

        try:
            with _stdout_redirected_to(log):
                spark = open_spark(settings)
            try:
                yield spark
            finally:
                spark.stop()
        except (PySparkException, Py4JError) as error:
            traceback.print_exc()  # into the log
            raise OperatorError(f"Spark has failed: {_reason(error)}", f"The whole log is in {log}") from error


@contextmanager
def alone(settings: Settings) -> Iterator[None]:
    """Lets one command at a time write to the lake."""
    lock = FileLock(run_folder(settings.home) / "lake.lock", mode=0o600)
    with writable(settings.home):
        run_folder(settings.home).mkdir(parents=True, exist_ok=True)
        try:
            lock.acquire(blocking=False)
        except Timeout as held:
            raise OperatorError(
                "Another till lake run or stream is at work on this lake.", "Wait for it, or stop it with Ctrl-C."
            ) from held
    try:
        yield
    finally:
        lock.release()


@contextmanager
def _stderr_to_log(home: Path) -> Iterator[Path]:
    """Sends to a log what Spark and Python's warnings write to standard error. `err` still prints to the terminal."""
    with writable(home):
        log_folder(home).mkdir(parents=True, exist_ok=True)
        log = begin(home, LOG)
    sys.stderr.flush()
    with os.fdopen(os.dup(2), "w") as terminal, log.open("ab") as file:
        os.dup2(file.fileno(), 2)
        ours, err.file = err.file, terminal
        try:
            yield log
        finally:
            sys.stderr.flush()
            err.file = ours
            os.dup2(terminal.fileno(), 2)


@contextmanager
def _stdout_redirected_to(log: Path) -> Iterator[None]:
    """Redirects standard output. A JVM keeps the one it is started with, and Delta prints there what it deletes."""
    sys.stdout.flush()
    ours = os.dup(1)
    with log.open("ab") as file:
        os.dup2(file.fileno(), 1)
    try:
        yield
    finally:
        sys.stdout.flush()
        os.dup2(ours, 1)
        os.close(ours)


def _reason(error: Exception) -> str:
    """Returns the first line of the error."""
    java = getattr(error, "java_exception", None)
    message = str(java.toString() if java is not None else error).strip() or type(error).__name__
    return message.splitlines()[0][:300]
