"""The Spark session of the lake: the locked jars on its class path, and a configuration that fits its master."""

import os
import re
import shlex
import sys
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from importlib.resources import files
from pathlib import Path

from pyspark.sql import SparkSession

from analytics.settings import LakeSettings
from shared.settings import HOST

SPARK = {
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    # The ingest and gold have more plans between them than the 100 that Spark keeps, and compile them again and again.
    "spark.sql.codegen.cache.maxEntries": "2000",
    "spark.sql.session.timeZone": "UTC",
    "spark.pyspark.python": sys.executable,
    # A header may occur twice: the last one counts, as in Python's dict.
    "spark.sql.mapKeyDedupPolicy": "LAST_WIN",
    "spark.scheduler.mode": "FAIR",
}
DELTA = {
    "spark.sql.extensions": "io.delta.sql.DeltaSparkSessionExtension",
    "spark.sql.catalog.spark_catalog": "org.apache.spark.sql.delta.catalog.DeltaCatalog",
    "spark.databricks.delta.properties.defaults.checkpointInterval": "100",
    # A compacted file is large enough to be left alone: compactions cost what is new, not what the table has.
    "spark.databricks.delta.optimize.minFileSize": "67108864",
    "spark.databricks.delta.optimize.maxFileSize": "134217728",
    # Readers without Spark (delta-rs, DuckDB) support neither.
    "spark.databricks.delta.properties.defaults.enableDeletionVectors": "false",
    "spark.databricks.delta.properties.defaults.checkpointPolicy": "classic",
}
JVM = (
    # Spark tells a stopped batch from a failed one by matching the error's text with `(.|\r\n|\r|\n)*` (PROXY_ERROR in
    # StreamExecution). Java's regular expressions recurse for every character of such a group and need half a kilobyte
    # of stack each: a text of 2,000 characters overflows the default stack of one megabyte.
    "-Xss16m",
    # The collector for few cores: the default one marks concurrently and takes a sixth of the CPU for it. What Spark
    # holds for its joins, half of the heap, and the plans next to it must fit into the old generation: three quarters.
    "-XX:+UseParallelGC",
    "-XX:NewRatio=3",
)


def open_session(settings: LakeSettings, jars: Iterable[Path]) -> SparkSession:
    """Opens a session for Kafka, Avro and Delta. A process has one: a second call returns it again."""
    jars = list(jars)
    builder = SparkSession.builder.appName("till lake")
    for key, value in configuration(settings, jars).items():
        builder = builder.config(key, value)
    return builder.getOrCreate()


def configuration(settings: LakeSettings, jars: Iterable[Path]) -> dict[str, str]:
    """Returns Spark's configuration. What `TILL_SPARK_CONFIG` sets comes last and overrides everything else."""
    jars, ours = list(jars), files("analytics.runtime")
    logging = f"-Dlog4j2.configurationFile=file:{ours / 'log4j2.properties'}"
    config = {
        **SPARK,
        **DELTA,
        "spark.master": settings.spark_master,
        "spark.driver.memory": settings.spark_driver_memory,
        "spark.driver.extraClassPath": ":".join(map(str, jars)),
        "spark.driver.defaultJavaOptions": " ".join((*JVM, logging)),
        "spark.scheduler.allocation.file": f"file:{ours / 'pools.xml'}",
    }
    cores = local_cores(settings.spark_master)
    if cores is None:
        config["spark.jars"] = ",".join(map(str, jars))  # executors elsewhere fetch them from the driver
    else:
        config |= _local(cores)
    return config | parse_config(settings.spark_config)


def local_cores(master: str) -> int | None:
    """Returns how many cores a local master uses; None for a cluster."""
    found = re.fullmatch(r"local(?:\[(\d+|\*)(?:,\d+)?\])?", master)
    if not found:
        return None
    cores = found[1] or "1"
    return (os.cpu_count() or 1) if cores == "*" else int(cores)


def parse_config(text: str) -> dict[str, str]:
    """Parses `TILL_SPARK_CONFIG`: pairs of key=value, quoted as in a shell."""
    pairs = (pair.partition("=") for pair in shlex.split(text))
    return {key: value for key, _, value in pairs}


@contextmanager
def scheduler_pool(spark: SparkSession, name: str) -> Iterator[None]:
    """Runs the jobs of a block in a pool of `pools.xml`. A streaming query stays in the pool where it was started."""
    context = spark.sparkContext
    context.setLocalProperty("spark.scheduler.pool", name)
    try:
        yield
    finally:
        context.setLocalProperty("spark.scheduler.pool", None)  # type: ignore[arg-type]


def _local(cores: int) -> dict[str, str]:
    """Configures as many partitions as there are cores. On a cluster the defaults of Spark and Delta stay."""
    partitions = str(max(2, cores))
    return {
        "spark.driver.host": HOST,  # no other machine has to reach it
        "spark.driver.bindAddress": HOST,
        "spark.sql.shuffle.partitions": partitions,  # Spark's default is 200
        # The partitions in which Delta computes the state of a table. With 50, the default, an append takes four times
        # as long on two cores.
        "spark.databricks.delta.snapshotPartitions": partitions,
        # The tasks in which VACUUM lists the files of a table. 10,000, the default, take minutes on two cores.
        "spark.sql.sources.parallelPartitionDiscovery.parallelism": str(4 * max(2, cores)),
    }
