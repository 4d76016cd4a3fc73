"""Spark at work for a command: one driver at a time, its noise in a log, what ends it in a line."""

import fcntl
import os
import sys
import traceback
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from infra.cli.console import err
from infra.local.home import log_folder, run_folder, writable
from infra.local.logs import begin
from shared.errors import OperatorError
from shared.settings import Settings

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

LOG = "lake"


@contextmanager
def at_work(settings: Settings) -> Iterator["SparkSession"]:
    """A session that ends with the block. Java and the jars are looked for first: they may be what is missing."""
    from infra.jars import jars
    from infra.java import find_java

    find_java(settings)
    jars(settings, "spark")
    with _noise_in_a_log(settings.home) as log:
        from py4j.protocol import Py4JError  # type: ignore[import-untyped]
        from pyspark.errors import PySparkException

        from infra.spark import open_spark

        try:
            with _born_talking_to(log):
                spark = open_spark(settings)
            try:
                yield spark
            finally:
                spark.stop()
        except (PySparkException, Py4JError) as error:
            traceback.print_exc()  # into the log
            raise OperatorError(f"Spark has given up: {_reason(error)}", f"All of it is in {log}") from error


@contextmanager
def alone(settings: Settings) -> Iterator[None]:
    """One ingest at a time. The kernel drops the lock with its holder, so none is ever stale."""
    with writable(settings.home):
        run_folder(settings.home).mkdir(parents=True, exist_ok=True)
        lock = os.open(run_folder(settings.home) / "lake.lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        os.close(lock)
        raise OperatorError(
            "Another till lake run or stream is at work on this lake.", "Wait for it, or stop it with Ctrl-C."
        ) from None
    try:
        yield
    finally:
        os.close(lock)


@contextmanager
def _noise_in_a_log(home: Path) -> Iterator[Path]:
    """What Spark's Java, its launcher and Python's own warnings write to standard error. Ours still reaches it."""
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
def _born_talking_to(log: Path) -> Iterator[None]:
    """A JVM keeps the standard output that it is started with, and Delta tells there what it deletes."""
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
    """The first line that is not about where it happened."""
    java = getattr(error, "java_exception", None)
    said = str(java.toString() if java is not None else error).strip() or type(error).__name__
    return said.splitlines()[0][:300]
