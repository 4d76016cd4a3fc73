"""The way back from quarantine, once what kept a message there is mended: a schema registered, the code brought up."""

import json

from delta.tables import DeltaTable
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as sf

from analytics.ingest.duplicates import PREFIX, before, contradictions, told_apart
from analytics.ingest.quarantine import schema_id
from analytics.ingest.silver import silver_columns, sound
from analytics.ingest.writers import Writers, known, learned
from analytics.tables import MESSAGE, TOPICS, path_of, read
from shared.crashpoints import crashpoint
from shared.settings import Settings

KEY = ("topic", "partition", "offset")
RETRY = json.dumps({"query": "retry"})


def retry_quarantine(spark: SparkSession, settings: Settings) -> int:
    """Try again what is there: what can be read now goes to silver and leaves. How many left.

    After a death in between it is done again: silver knows the events by their ids.
    """
    aside = read(spark, settings, "silver.quarantine").select(*MESSAGE).persist()
    try:
        met = [row[0] for row in aside.select(schema_id().try_cast("int")).distinct().collect() if row[0] is not None]
        writers = learned(spark, settings, known(spark, settings), met)
        return sum(_retry(spark, settings, aside, topic, writers) for topic in TOPICS)
    finally:
        aside.unpersist()


def _retry(spark: SparkSession, settings: Settings, aside: DataFrame, topic: str, writers: Writers) -> int:
    readable = sound(aside, topic, writers).persist()
    try:
        prefixes = [row[0] for row in readable.select(sf.substring("event_id", 1, PREFIX)).distinct().collect()]
        if not prefixes:
            return 0
        apart = told_apart(readable, before(spark, settings, TOPICS[topic], prefixes))
        false = contradictions(apart.where("first IS NOT NULL"), read(spark, settings, "bronze.events"))
        # Counted before silver has them: afterwards they would all have come before.
        mended = apart.select(*KEY).exceptAll(false.select(*KEY)).localCheckpoint()
        new = apart.where("first IS NULL").select(*silver_columns(topic, writers))
        writer = new.write.format("delta").mode("append").option("userMetadata", RETRY)
        writer.save(path_of(settings, f"silver.{TOPICS[topic]}"))
        # Silver has them, quarantine too: the next try finds that it knows them, and removes them.
        crashpoint("mended, still in quarantine")
        _remove(spark, settings, mended)
        return mended.count()
    finally:
        readable.unpersist()


def _remove(spark: SparkSession, settings: Settings, places: DataFrame) -> None:
    same = " AND ".join(f"q.{column} = p.{column}" for column in KEY)
    quarantine = DeltaTable.forPath(spark, path_of(settings, "silver.quarantine")).alias("q")
    quarantine.merge(places.alias("p"), same).whenMatchedDelete().execute()
