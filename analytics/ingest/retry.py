"""Moves messages from quarantine to silver once their cause is fixed: a schema was registered, or the code updated."""

from delta.tables import DeltaTable
from pyspark.sql import DataFrame
from pyspark.sql import functions as sf

from analytics.catalog import TOPICS
from analytics.catalog.events import MESSAGE, POSITION
from analytics.catalog.table import names
from analytics.ingest.deduplication import PREFIX, contradictions, earlier_events, with_first_occurrence
from analytics.ingest.quarantine import wire_schema_id
from analytics.ingest.silver import silver_columns, valid_events
from analytics.ingest.writer_schemas import WriterSchemas, fetch_missing, load_writer_schemas
from analytics.lake import Lake
from analytics.log.commits import RetryCommit
from shared.recovery.crash_points import crashpoint

KEY = names(POSITION)


def retry_quarantine(lake: Lake) -> int:
    """Decodes the messages in quarantine again; those that are valid now move to silver. Returns how many moved.

    After a crash in between it can be run again: silver knows the events by their ids.
    """
    quarantined = lake.read("silver.quarantine").select(*names(MESSAGE)).persist()
    try:
        found = quarantined.select(wire_schema_id().try_cast("int")).distinct().collect()
        schema_ids = [row[0] for row in found if row[0] is not None]
        writers = fetch_missing(lake, load_writer_schemas(lake), schema_ids)
        return sum(_retry_topic(lake, quarantined, topic, writers) for topic in TOPICS)
    finally:
        quarantined.unpersist()


def _retry_topic(lake: Lake, quarantined: DataFrame, topic: str, writers: WriterSchemas) -> int:
    readable = valid_events(quarantined, topic, writers).persist()
    try:
        prefixes = [row[0] for row in readable.select(sf.substring("event_id", 1, PREFIX)).distinct().collect()]
        if not prefixes:
            return 0
        events = with_first_occurrence(readable, earlier_events(lake, TOPICS[topic], prefixes))
        still_wrong = contradictions(events.where("first IS NOT NULL"), lake.read("bronze.events"))
        # Counted before silver has them: afterwards all of them would be repetitions.
        valid = events.select(*KEY).exceptAll(still_wrong.select(*KEY)).localCheckpoint()
        new = events.where("first IS NULL").select(*silver_columns(topic, writers))
        writer = new.write.format("delta").mode("append").option("userMetadata", RetryCommit().metadata())
        writer.save(lake.path(f"silver.{TOPICS[topic]}"))
        # Silver has them, and so has quarantine: the next run recognises them by their ids and removes them.
        crashpoint("mended, still in quarantine")
        _remove_from_quarantine(lake, valid)
        return valid.count()
    finally:
        readable.unpersist()


def _remove_from_quarantine(lake: Lake, places: DataFrame) -> None:
    same = " AND ".join(f"q.{column} = p.{column}" for column in KEY)
    quarantine = DeltaTable.forPath(lake.spark, lake.path("silver.quarantine")).alias("q")
    quarantine.merge(places.alias("p"), same).whenMatchedDelete().execute()
