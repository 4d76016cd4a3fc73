"""Silver from the beginning, up to a cut: from bronze, or from Kafka itself. What the stream wrote is not looked at."""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Literal

from pyspark.sql import DataFrame, SparkSession

from analytics import storage
from analytics.cut import TABLES, Cut
from analytics.ingest.bronze import FEED, bronze_rows
from analytics.ingest.silver import silver_rows
from analytics.ingest.writers import known
from analytics.kafka import source_options
from analytics.keeping import Keeping
from analytics.layers.advancing import Everything
from analytics.tables import read
from shared.settings import Settings

Source = Literal["bronze", "kafka"]


@contextmanager
def rebuilt(
    spark: SparkSession, settings: Settings, cut: Cut, purpose: str, source: Source = "bronze"
) -> Iterator[Everything]:
    """Written down in a folder of its own meanwhile, as many tables are computed from it. One purpose at a time."""
    folder = f"{settings.lake}/_scratch/{purpose}"
    rows = messages(spark, settings, cut, source)
    waiting = read(spark, settings, "silver.quarantine").select("topic", "partition", "offset")
    good = rows.join(waiting.distinct(), ["topic", "partition", "offset"], "left_anti")
    writers = known(spark, settings)
    try:
        for table in TABLES:
            silver_rows(good, table, writers).write.mode("overwrite").parquet(f"{folder}/{table}")
        silver = {table: spark.read.parquet(f"{folder}/{table}") for table in TABLES}
        with Keeping() as keeping:
            yield lambda scope: keeping.once(scope, lambda: scope.seen(silver, keeping.keep))
    finally:
        storage.remove(spark, folder)


def messages(spark: SparkSession, settings: Settings, cut: Cut, source: Source) -> DataFrame:
    if source == "bronze":
        return read(spark, settings, "bronze.events").where(cut.before())
    kafka = (
        spark.read.format("kafka")
        .options(**source_options(settings))
        .option("subscribe", ",".join(FEED))
        .option("startingOffsets", "earliest")
        .option("endingOffsets", json.dumps(cut.offsets))
        .option("includeHeaders", "true")
        .load()
    )
    return bronze_rows(kafka)
