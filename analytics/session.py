"""The Spark session of the lake: the locked jars on its class path, and settings for a machine of a few cores."""

import shlex
import sys
from collections.abc import Iterable, Mapping
from importlib.resources import files
from pathlib import Path

from pyspark.sql import SparkSession

from shared.settings import HOST, Settings

CONFIG = {
    "spark.master": "local[*]",
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.sql.shuffle.partitions": "2",
    # The ingest and gold have more plans between them than the 100 that Spark keeps, and compile them again and again.
    "spark.sql.codegen.cache.maxEntries": "2000",
    "spark.sql.session.timeZone": "UTC",
    "spark.pyspark.python": sys.executable,
}
DELTA = {
    "spark.sql.extensions": "io.delta.sql.DeltaSparkSessionExtension",
    "spark.sql.catalog.spark_catalog": "org.apache.spark.sql.delta.catalog.DeltaCatalog",
    # The state of a table is a Spark job over this many partitions; 50, the default, makes an append take four times
    # as long on two cores.
    "spark.databricks.delta.snapshotPartitions": "2",
    "spark.databricks.delta.properties.defaults.checkpointInterval": "100",
    # What is compacted once is large enough to be left alone: a table's compactions cost what is new, not what it has.
    "spark.databricks.delta.optimize.minFileSize": "67108864",
    "spark.databricks.delta.optimize.maxFileSize": "134217728",
    # Vacuum lists the files of a table in this many tasks. 10,000, the default, take minutes on two cores.
    "spark.sql.sources.parallelPartitionDiscovery.parallelism": "8",
    # Readers without Spark (delta-rs, DuckDB) know neither.
    "spark.databricks.delta.properties.defaults.enableDeletionVectors": "false",
    "spark.databricks.delta.properties.defaults.checkpointPolicy": "classic",
    # A header may be there twice: the last one counts, as in Python's dict.
    "spark.sql.mapKeyDedupPolicy": "LAST_WIN",
    "spark.scheduler.mode": "FAIR",
}


def spark_session(name: str, jars: Iterable[Path], config: Mapping[str, str] | None = None) -> SparkSession:
    """One a process: a second call gives the first one's session."""
    builder = SparkSession.builder.appName(name).config("spark.driver.extraClassPath", ":".join(map(str, jars)))
    for key, value in {**CONFIG, **(config or {})}.items():
        builder = builder.config(key, value)
    return builder.getOrCreate()


def lake_session(settings: Settings, jars: Iterable[Path]) -> SparkSession:
    """Ready for Kafka, Avro and Delta. Where it runs is a matter of settings; the code is the same."""
    jars = list(jars)
    ours = files("analytics")
    # Spark tells a batch that was stopped from one that failed by the text of the error, with an expression that needs
    # half a kilobyte of the stack for each letter of it. The usual megabyte overflows.
    # The collector for few cores: the usual one marks beside the work, and takes a sixth of the CPU for it. What Spark
    # holds for its joins, half of the heap, and the plans beside it must fit into the old generation: three quarters.
    options = f"-Xss16m -XX:+UseParallelGC -XX:NewRatio=3 -Dlog4j2.configurationFile=file:{ours / 'log4j2.properties'}"
    config = DELTA | {
        "spark.master": settings.spark_master,
        "spark.driver.memory": settings.spark_driver_memory,
        "spark.driver.defaultJavaOptions": options,
        "spark.scheduler.allocation.file": f"file:{ours / 'pools.xml'}",
    }
    if settings.spark_master.startswith("local"):
        config |= {"spark.driver.host": HOST, "spark.driver.bindAddress": HOST}  # nobody else has to reach it
    else:
        config["spark.jars"] = ",".join(map(str, jars))  # executors elsewhere fetch them from the driver
    return spark_session("till lake", jars, config | given(settings))


def given(settings: Settings) -> dict[str, str]:
    pairs = (pair.partition("=") for pair in shlex.split(settings.spark_config))
    return {key: value for key, _, value in pairs}
