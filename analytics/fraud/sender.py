"""Sends alerts to `fraud.alerts`, each once: alerts that the topic already has are left out."""

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass

from pyspark.sql import Row
from pyspark.sql import functions as sf

from analytics.catalog import ALERTS
from analytics.fraud.event import FraudAlert, open_alert_codec, to_message
from analytics.lake import Lake
from analytics.runtime.kafka_options import from_kafka
from analytics.settings import LakeSettings
from shared.envelope import Message
from shared.messaging.relay import open_producer, publish
from shared.recovery.crash_points import crashpoint
from shared.schemas.codec import Codec
from shared.schemas.contract.event_schemas import Schemas


@dataclass
class AlertSender:
    """Publishes alerts and remembers which ones the topic has."""

    settings: LakeSettings
    codec: Codec
    sent: set[str]
    """Ids of all alerts in the topic, whichever run has sent them. Two runs at the same time may send one twice."""

    @classmethod
    def open(cls, lake: Lake, schemas: Schemas) -> "AlertSender":
        return cls(lake.settings, asyncio.run(open_alert_codec(lake.settings, schemas)), _ids_in_topic(lake))

    def send(self, found: Sequence[Row]) -> int:
        """Sends the alerts that have not been sent yet. Returns their number."""
        new = {row["alert_id"]: _alert(row) for row in found if row["alert_id"] not in self.sent}
        if not new:
            return 0
        # Found, not sent: after a crash here the batch runs again, from the same state and messages. Nothing is lost.
        crashpoint("alerts found, not sent")
        asyncio.run(_publish(self.settings, [to_message(alert, self.codec) for alert in new.values()]))
        # Sent, not committed: the batch runs again and finds the same alerts. Those that the topic has are left out;
        # after a crash while they are sent, the rest is sent.
        crashpoint("alerts sent, not committed")
        self.sent |= new.keys()
        return len(new)


async def _publish(settings: LakeSettings, messages: list[Message]) -> None:
    """Publishes as the services do. Spark's own sink would run a job for a handful of messages."""
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


def _ids_in_topic(lake: Lake) -> set[str]:
    headers = from_kafka(lake.spark.read, lake.settings, [ALERTS]).load().select(sf.explode("headers").alias("header"))
    ids = headers.where("header.key = 'ce_id'").select(sf.col("header.value").cast("string"))
    return {row[0] for row in ids.collect()}
