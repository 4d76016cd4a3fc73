"""The lake as one object: where its tables are, what their commits say, and, with Spark, their rows.

`LakeFiles` needs no Spark and opens at once; the command line and the readers of analysts use it. `Lake` adds a Spark
session. A signature says which is needed: a function that takes `LakeFiles` runs without Spark.
"""

from pathlib import Path
from typing import TYPE_CHECKING, Any

from deltalake import DeltaTable

from analytics.catalog import ALL_TABLES, READABLE_LAYERS
from analytics.log.table_log import TableLog
from analytics.settings import LakeSettings
from shared.errors import OperatorError

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from analytics.runtime.storage import Storage


class LakeFiles:
    """The tables as files and commits, read without Spark."""

    def __init__(self, settings: LakeSettings) -> None:
        self.settings = settings

    def path(self, table: str) -> str:
        """Returns where a table (`silver.cart_events`) is stored."""
        return f"{self.settings.lake}/{table.replace('.', '/')}"

    def log(self, table: str) -> TableLog:
        return TableLog(self.path(table))

    def snapshot(self, table: str, version: int | None = None) -> DeltaTable:
        """Opens a table with delta-rs, at a version or the newest one."""
        return DeltaTable(self.path(table), version=version)

    def row_count(self, table: str, version: int) -> int:
        """Counts the rows of a version by the statistics of its files, without reading them."""
        files: Any = self.snapshot(table, version).get_add_actions(flatten=True)
        return sum(files["num_records"].to_pylist())

    def tables(self) -> list[str]:
        """Names the tables that exist. A folder is listed; in an object store the tables of the catalog are tried."""
        if self.is_remote:
            return [name for name in ALL_TABLES if DeltaTable.is_deltatable(self.path(name))]
        folder = Path(self.settings.lake)
        logs = [log for layer in READABLE_LAYERS for log in sorted(folder.joinpath(layer).glob("*/_delta_log"))]
        # A table that is being created has a folder and no commit yet.
        return [f"{log.parents[1].name}.{log.parent.name}" for log in logs if any(log.glob("*.json"))]

    def require_tables(self) -> list[str]:
        """Names the tables that exist, or says how to make some."""
        tables = self.tables()
        if not tables:
            raise self.missing("lake")
        return tables

    def missing(self, name: str) -> OperatorError:
        """Returns the error for a lake or a table that the next `till lake run` will make."""
        return OperatorError(f"There is no {name} yet in {self.settings.lake}.", "It is made by: till lake run")

    @property
    def is_remote(self) -> bool:
        return "://" in self.settings.lake

    def checkpoints(self, query: str) -> str:
        """Returns the folder of a streaming query's checkpoints, which has one folder per generation."""
        return f"{self.settings.lake}/_checkpoints/{query}"

    def checkpoint(self, query: str, generation: str) -> str:
        return f"{self.checkpoints(query)}/{generation}"

    def scratch(self, purpose: str) -> str:
        """Returns a folder for intermediate results, to be removed after use."""
        return f"{self.settings.lake}/_scratch/{purpose}"


class Lake(LakeFiles):
    """The tables with a Spark session to read and write them."""

    def __init__(self, spark: "SparkSession", settings: LakeSettings) -> None:
        super().__init__(settings)
        self.spark = spark

    def read(self, table: str, version: int | None = None) -> "DataFrame":
        reader = self.spark.read.format("delta")
        if version is not None:
            reader = reader.option("versionAsOf", version)
        return reader.load(self.path(table))

    def in_session(self, spark: "SparkSession") -> "Lake":
        """Returns the same lake with another session of the same Spark."""
        return Lake(spark, self.settings)

    @property
    def storage(self) -> "Storage":
        from analytics.runtime.storage import Storage

        return Storage(self.spark)
