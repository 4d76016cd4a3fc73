"""Files of the lake that are not tables, wherever it is: the local disk and object stores alike, through Hadoop."""

from typing import Any

from pyspark.sql import SparkSession


def names(spark: SparkSession, folder: str) -> list[str]:
    """What is in a folder; nothing, where there is none."""
    path, system = _at(spark, folder)
    return [entry.getPath().getName() for entry in system.listStatus(path)] if system.exists(path) else []


def text(spark: SparkSession, file: str) -> str:
    path, system = _at(spark, file)
    stream = system.open(path)
    try:
        return bytes(stream.readAllBytes()).decode()
    finally:
        stream.close()


def remove(spark: SparkSession, folder: str) -> None:
    """With all that is in it; nothing happens where there is none."""
    path, system = _at(spark, folder)
    system.delete(path, True)


def _at(spark: SparkSession, name: str) -> tuple[Any, Any]:
    jvm: Any = spark.sparkContext._jvm  # Spark's Python API has no file systems
    path = jvm.org.apache.hadoop.fs.Path(name)
    return path, path.getFileSystem(spark.sparkContext._jsc.hadoopConfiguration())
