"""Recomputes silver from the beginning up to a cut, from bronze or from Kafka itself.

Stored events of silver are not read, so a mistake in them is found. Messages in quarantine are left out.
"""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Literal

from pyspark.sql import DataFrame

from analytics.catalog import FEED, SILVER_TABLES
from analytics.catalog.events import POSITION
from analytics.catalog.table import names
from analytics.incremental.refresh import InputsOf
from analytics.incremental.scope import Silver
from analytics.ingest.bronze import bronze_rows, is_between
from analytics.ingest.silver import silver_rows
from analytics.ingest.writer_schemas import load_writer_schemas
from analytics.lake import Lake
from analytics.log.cut import Cut
from analytics.runtime.frame_cache import FrameCache
from analytics.runtime.kafka_options import from_kafka

Source = Literal["bronze", "kafka"]


@contextmanager
def rebuild_silver(lake: Lake, cut: Cut, purpose: str, source: Source = "bronze") -> Iterator[InputsOf]:
    """Writes silver to a scratch folder, as many tables are computed from it. One purpose runs at a time."""
    folder = lake.scratch(purpose)
    place = names(POSITION)
    quarantined = lake.read("silver.quarantine").select(*place).distinct()
    valid = _messages(lake, cut, source).join(quarantined, on=place, how="left_anti")
    writers = load_writer_schemas(lake)
    try:
        for table in SILVER_TABLES:
            silver_rows(valid, table, writers).write.mode("overwrite").parquet(f"{folder}/{table}")
        silver = Silver({table: lake.spark.read.parquet(f"{folder}/{table}") for table in SILVER_TABLES})
        with FrameCache() as cache:
            yield lambda scope: cache.once(scope, lambda: scope.inputs(scope.stage(silver), cache.keep))
    finally:
        lake.storage.remove(folder)


def _messages(lake: Lake, cut: Cut, source: Source) -> DataFrame:
    if source == "bronze":
        return lake.read("bronze.events").where(is_between({}, cut.offsets))
    kafka = (
        from_kafka(lake.spark.read, lake.settings, FEED)
        .option("startingOffsets", "earliest")
        .option("endingOffsets", json.dumps(cut.offsets))
        .load()
    )
    return bronze_rows(kafka)
