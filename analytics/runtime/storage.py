"""Files of the lake that are not tables, such as checkpoints, through Hadoop's file systems."""

from typing import Any

from pyspark.sql import SparkSession


class Storage:
    """Reads, lists and removes files on any path that Spark can write to."""

    def __init__(self, spark: SparkSession) -> None:
        self._spark = spark

    def names(self, folder: str) -> list[str]:
        """Names the entries of a folder; a folder that does not exist has none."""
        path, system = self._at(folder)
        return [entry.getPath().getName() for entry in system.listStatus(path)] if system.exists(path) else []

    def text(self, file: str) -> str:
        path, system = self._at(file)
        stream = system.open(path)
        try:
            return bytes(stream.readAllBytes()).decode()
        finally:
            stream.close()

    def remove(self, folder: str) -> None:
        """Deletes a folder with its contents; one that does not exist is ignored."""
        path, system = self._at(folder)
        system.delete(path, True)

    def _at(self, name: str) -> tuple[Any, Any]:
        jvm: Any = self._spark.sparkContext._jvm  # Spark's Python API has no file systems
        path = jvm.org.apache.hadoop.fs.Path(name)
        return path, path.getFileSystem(self._spark.sparkContext._jsc.hadoopConfiguration())
