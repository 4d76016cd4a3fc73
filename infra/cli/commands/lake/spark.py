"""Runs Spark for a command: one writer at a time, its output in a log, its failure as one line."""

import os
import sys
import traceback
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from infra.cli.render.console import err
from infra.local.home import log_folder, run_folder, writable
from infra.local.processes.logs import begin
from infra.lock import open_lock
from infra.settings import Settings
from shared.errors import OperatorError

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

LOG = "lake"


@contextmanager
def at_work(settings: Settings) -> Iterator["SparkSession"]:
    """Opens a session that ends with the block. Missing Java or jars are reported before Spark is imported."""
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
    with ExitStack() as held:
        with writable(settings.home):
            run_folder(settings.home).mkdir(parents=True, exist_ok=True)
            take = held.enter_context(open_lock(run_folder(settings.home) / "lake.lock"))
        if not take():
            raise OperatorError(
                "Another till lake run or stream is at work on this lake.", "Wait for it, or stop it with Ctrl-C."
            )
        yield


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
