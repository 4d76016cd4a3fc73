"""The Spark session of the lake: the locked jars on its class path, and settings for a machine of a few cores."""

import sys
from collections.abc import Iterable, Mapping
from pathlib import Path

from pyspark.sql import SparkSession

CONFIG = {
    "spark.master": "local[*]",
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.sql.shuffle.partitions": "2",
    "spark.sql.session.timeZone": "UTC",
    "spark.pyspark.python": sys.executable,
}


def spark_session(name: str, jars: Iterable[Path], config: Mapping[str, str] | None = None) -> SparkSession:
    """One a process: a second call gives the first one's session."""
    builder = SparkSession.builder.appName(name).config("spark.driver.extraClassPath", ":".join(map(str, jars)))
    for key, value in {**CONFIG, **(config or {})}.items():
        builder = builder.config(key, value)
    return builder.getOrCreate()
