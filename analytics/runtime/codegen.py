"""Plans are compiled for many rows, and interpreted for few: to compile one then takes far longer than to run it."""

from collections.abc import Iterator
from contextlib import contextmanager

from pyspark.sql import SparkSession

INTERPRETED = {
    "spark.sql.codegen.wholeStage": "false",
    "spark.sql.codegen.factoryMode": "NO_CODEGEN",
    "spark.sql.adaptive.enabled": "false",
}


def interpret(session: SparkSession) -> None:
    for name, value in INTERPRETED.items():
        session.conf.set(name, value)


@contextmanager
def many_rows(session: SparkSession) -> Iterator[None]:
    """For a while, in a session that interprets."""
    for name in INTERPRETED:
        session.conf.unset(name)
    try:
        yield
    finally:
        interpret(session)
