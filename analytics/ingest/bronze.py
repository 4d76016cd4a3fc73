"""Bronze: every message as it came, raw bytes and headers. From it everything can be computed again."""

import json

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as sf

from analytics.commits import Offsets
from analytics.kafka import source_options
from analytics.tables import ALERTS, TOPICS
from shared.settings import Settings

FEED = [*TOPICS, ALERTS]


def messages(spark: SparkSession, settings: Settings, start: Offsets | None) -> DataFrame:
    """The stream of all event topics, from these offsets, or from the beginning."""
    stream = spark.readStream.format("kafka").options(**source_options(settings)).option("subscribe", ",".join(FEED))
    return (
        stream.option("startingOffsets", json.dumps(start) if start else "earliest")
        .option("maxOffsetsPerTrigger", settings.lake_batch_events)
        .option("includeHeaders", "true")
        .option("failOnDataLoss", "true")
        .load()
    )


def bronze_rows(kafka: DataFrame) -> DataFrame:
    return kafka.select(
        "topic",
        "partition",
        "offset",
        sf.col("timestamp").alias("kafka_time"),
        sf.col("key").cast("string").alias("key"),
        "value",
        "headers",
    )
