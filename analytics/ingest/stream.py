"""The streaming query that feeds the lake: Kafka to bronze, silver and quarantine in micro-batches, exactly once.

One query and not three: the tables' versions stay aligned with the batches, and no message is read twice.
"""

import time

from pyspark.errors import StreamingQueryException
from pyspark.sql.streaming.query import StreamingQuery

from analytics.ingest import recovery
from analytics.ingest.batches import Batches
from analytics.ingest.bronze import read_messages
from analytics.lake import Lake
from analytics.log.commits import IngestCommit
from analytics.runtime.session import scheduler_pool
from analytics.tables import create_missing
from shared.errors import OperatorError

POOL = "ingest"
BATCH_SECONDS = 30.0
"""Longest wait for the current batch when the query is stopped."""


def ingest_available(lake: Lake) -> None:
    """Brings bronze and silver up to the current end of the topics, and stops."""
    wait(_start(lake, availableNow=True))


def start_ingest(lake: Lake) -> StreamingQuery:
    """Starts the query: a batch begins when the last one is done and there are new messages."""
    return _start(lake, processingTime="0 seconds")


def wait(query: StreamingQuery, seconds: int | None = None) -> bool:
    """Waits for the query and returns whether it has ended. Raises an OperatorError if an operator can help."""
    try:
        return query.awaitTermination(seconds) is not False
    except StreamingQueryException as failed:
        raise _explained(failed) from failed


def stop(query: StreamingQuery) -> None:
    """Stops the query after the current batch. One that takes too long is interrupted; the next run repeats it."""
    deadline, batch = time.monotonic() + BATCH_SECONDS, _last_batch(query)
    while query.status["isTriggerActive"] and _last_batch(query) == batch and time.monotonic() < deadline:
        time.sleep(0.05)
    query.stop()


def _last_batch(query: StreamingQuery) -> int:
    """Returns the number of the last batch that was completed, or -1."""
    last = query.lastProgress
    return int(last["batchId"]) if last else -1


def _start(lake: Lake, **trigger: str | bool) -> StreamingQuery:
    create_missing(lake)
    start = recovery.find_start(lake)
    batches = Batches(lake, start.generation, start.topics)
    if start.half_done:
        batches.write_silver(start.half_done.rows, start.half_done.commit)
    messages = read_messages(lake, start.offsets)
    writer = messages.writeStream.queryName(IngestCommit.QUERY).foreachBatch(batches.write)
    checkpoint = lake.checkpoint(IngestCommit.QUERY, start.generation)
    with scheduler_pool(lake.spark, POOL):
        return writer.option("checkpointLocation", checkpoint).trigger(**trigger).start()  # type: ignore[arg-type]


def _explained(failed: StreamingQueryException) -> Exception:
    """Finds the cause in the text: an error in a batch comes back through the JVM as a string."""
    text = str(failed)
    if "RegistryUnavailable" in text:
        return OperatorError(
            "The schema registry does not answer, and there are events of a schema that the lake does not know yet.",
            "Start it, and continue with: till lake run. Bronze has the events.",
        )
    if "failOnDataLoss" in text:
        return OperatorError(
            "Kafka no longer has messages that the lake has not read: a topic was deleted, or its retention was cut.",
            "Run till lake run: it names the topic, and what can be done.",
        )
    return failed
