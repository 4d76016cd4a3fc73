"""The barest Spark stream from Kafka to Delta, as a reference for the lake's figures."""

from pyspark.sql import SparkSession
from pyspark.sql.streaming.query import StreamingQuery

from analytics.catalog import FEED
from infra.settings import Settings


def bare(spark: SparkSession, settings: Settings, folder: str, start: str, **trigger: str | bool) -> StreamingQuery:
    """Starts the stream as in Delta's manual, with the batch size of the lake."""
    kafka = spark.readStream.format("kafka").option("kafka.bootstrap.servers", settings.kafka_bootstrap)
    read = (
        kafka.option("subscribe", ",".join(FEED))
        .option("startingOffsets", start)
        .option("maxOffsetsPerTrigger", settings.lake_batch_events)
    )
    return (
        read.option("includeHeaders", "true")
        .load()
        .writeStream.format("delta")
        .option("checkpointLocation", f"{folder}/checkpoint")
        .trigger(**trigger)  # type: ignore[arg-type]
        .start(f"{folder}/table")
    )
