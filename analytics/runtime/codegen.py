"""Turns Spark's code generation off for plans over few rows: compiling them takes far longer than running them."""

from collections.abc import Iterator
from contextlib import contextmanager

from pyspark.sql import SparkSession

INTERPRETED = {
    "spark.sql.codegen.wholeStage": "false",
    "spark.sql.codegen.factoryMode": "NO_CODEGEN",
    "spark.sql.adaptive.enabled": "false",
}


def interpret(session: SparkSession) -> None:
    """Makes a session interpret its plans from now on."""
    for name, value in INTERPRETED.items():
        session.conf.set(name, value)


@contextmanager
def many_rows(session: SparkSession) -> Iterator[None]:
    """Turns code generation back on for a block, in a session that interprets."""
    for name in INTERPRETED:
        session.conf.unset(name)
    try:
        yield
    finally:
        interpret(session)
