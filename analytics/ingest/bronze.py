"""Bronze: every message as it was read from Kafka, raw bytes and headers. Everything else can be recomputed from it."""

import json
from functools import reduce
from operator import or_

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as sf

from analytics.catalog import FEED
from analytics.lake import Lake
from analytics.log.offsets import Offsets
from analytics.runtime.kafka_options import from_kafka


def read_messages(lake: Lake, start: Offsets | None) -> DataFrame:
    """Streams all topics of the lake from these offsets, or from the beginning."""
    return (
        from_kafka(lake.spark.readStream, lake.settings, FEED)
        .option("startingOffsets", json.dumps(start) if start else "earliest")
        .option("maxOffsetsPerTrigger", lake.settings.lake_batch_events)
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


def is_between(start: Offsets, end: Offsets) -> Column:
    """Tells whether a message is at or after `start` and before `end`. A partition without a start begins at 0."""
    ranges = (
        (sf.col("topic") == topic)
        & (sf.col("partition") == int(partition))
        & sf.col("offset").between(start.get(topic, {}).get(partition, 0), offset - 1)
        for topic, partitions in end.items()
        for partition, offset in partitions.items()
    )
    return reduce(or_, ranges, sf.lit(False))
