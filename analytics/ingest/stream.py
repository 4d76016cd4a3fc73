"""The one streaming query of the lake: Kafka to bronze, silver and quarantine, a batch at a time, each exactly once.

One query and not three: the tables' versions stay aligned with the batches, and nothing is read twice.
"""

import time

from pyspark.errors import StreamingQueryException
from pyspark.sql import SparkSession
from pyspark.sql.streaming.query import StreamingQuery

from analytics.ingest import recovery
from analytics.ingest.batches import Batches
from analytics.ingest.bronze import messages
from analytics.paths import checkpoint_of
from analytics.tables import create_missing
from shared.errors import OperatorError
from shared.settings import Settings

POOL = "ingest"
BATCH_SECONDS = 30.0


def ingest_available(spark: SparkSession, settings: Settings) -> None:
    """Bring bronze and silver up to where the topics end now, and stop."""
    wait(_start(spark, settings, availableNow=True))


def start_ingest(spark: SparkSession, settings: Settings, trigger_seconds: float = 0) -> StreamingQuery:
    """Keep going: a new batch that many seconds after the last began, or when it is done. `wait` for what ends it."""
    return _start(spark, settings, processingTime=f"{trigger_seconds:g} seconds")


def wait(query: StreamingQuery, seconds: int | None = None) -> bool:
    """Whether it has ended, without a fault. A fault that an operator can mend is raised as such."""
    try:
        return query.awaitTermination(seconds) is not False
    except StreamingQueryException as failed:
        raise _in_words(failed) from failed


def stop(query: StreamingQuery) -> None:
    """After the batch at hand. One that takes too long is cut off, and taken again by the next run."""
    deadline, batch = time.monotonic() + BATCH_SECONDS, _batch(query)
    while query.status["isTriggerActive"] and _batch(query) == batch and time.monotonic() < deadline:
        time.sleep(0.05)
    query.stop()


def _batch(query: StreamingQuery) -> int:
    """The last that was done."""
    last = query.lastProgress
    return int(last["batchId"]) if last else -1


def _start(spark: SparkSession, settings: Settings, **trigger: str | bool) -> StreamingQuery:
    create_missing(spark, settings)
    start = recovery.resume(spark, settings)
    batches = Batches(spark, settings, start.generation, start.topics)
    if start.half_done:
        batches.silver(start.half_done.rows, start.half_done.commit)
    # Jobs of a query go to the pool of the thread that started it.
    spark.sparkContext.setLocalProperty("spark.scheduler.pool", POOL)
    try:
        writer = messages(spark, settings, start.offsets).writeStream.queryName("ingest").foreachBatch(batches.take)
        checkpoint = checkpoint_of(settings, "ingest", start.generation)
        return writer.option("checkpointLocation", checkpoint).trigger(**trigger).start()  # type: ignore[arg-type]
    finally:
        spark.sparkContext.setLocalProperty("spark.scheduler.pool", None)  # type: ignore[arg-type]


def _in_words(failed: StreamingQueryException) -> Exception:
    """What went wrong in a batch comes back through the JVM, as text."""
    text = str(failed)
    if "RegistryUnavailable" in text:
        return OperatorError(
            "The schema registry does not answer, and there are events of a schema that the lake has not met yet.",
            "Start it, and go on with: till lake run. Bronze has the events.",
        )
    if "failOnDataLoss" in text:
        return OperatorError(
            "Kafka no longer has messages that the lake has not read: a topic was deleted, or its retention was cut.",
            "Run till lake run: it names the topic, and what can be done.",
        )
    return failed
