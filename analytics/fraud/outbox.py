"""Alerts on their way to `fraud.alerts`: each once, going by what the topic has."""

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass

from pyspark.sql import Row, SparkSession
from pyspark.sql import functions as sf

from analytics.fraud.event import TOPIC, FraudAlert, alert_codec, message
from analytics.kafka import source_options
from shared.codec import Codec
from shared.crashpoints import crashpoint
from shared.envelope import Message
from shared.relay import open_producer, publish
from shared.schemas import Schemas
from shared.settings import Settings


@dataclass
class Outbox:
    settings: Settings
    codec: Codec
    sent: set[str]
    """Ids. Those of a run that died are found in the topic; two runs at once may send the same twice."""

    @classmethod
    def opened(cls, spark: SparkSession, settings: Settings, schemas: Schemas) -> "Outbox":
        return cls(settings, asyncio.run(alert_codec(settings, schemas)), _ids_in_topic(spark, settings))

    def send(self, found: Sequence[Row]) -> int:
        """Those that have not been sent yet; how many these are."""
        new = {row["alert_id"]: _alert(row) for row in found if row["alert_id"] not in self.sent}
        if not new:
            return 0
        # Found, not sent: after a death here the batch runs again, from the same state and messages. Nothing lost.
        crashpoint("alerts found, not sent")
        asyncio.run(_publish(self.settings, [message(alert, self.codec) for alert in new.values()]))
        # Sent, not committed: the batch runs again and finds the same alerts. Those that the topic has are left out;
        # after a death amid sending, the rest of them is sent.
        crashpoint("alerts sent, not committed")
        self.sent |= new.keys()
        return len(new)


async def _publish(settings: Settings, messages: list[Message]) -> None:
    """Not by Spark's sink, which takes a job for a handful of messages, but as the services do."""
    waiting = dict(enumerate(messages))
    async with open_producer(settings) as producer:
        while waiting:
            acknowledged, failure = await publish(producer, [(n, *sent) for n, sent in waiting.items()])
            if failure:
                raise failure
            for n in acknowledged:
                del waiting[n]


def _alert(row: Row) -> FraudAlert:
    fields = row.asDict()
    return FraudAlert(**fields | {"reasons": tuple(fields["reasons"])})


def _ids_in_topic(spark: SparkSession, settings: Settings) -> set[str]:
    topic = spark.read.format("kafka").options(**source_options(settings)).option("subscribe", TOPIC)
    headers = topic.option("includeHeaders", "true").load().select(sf.explode("headers").alias("header"))
    ids = headers.where("header.key = 'ce_id'").select(sf.col("header.value").cast("string"))
    return {row[0] for row in ids.collect()}
