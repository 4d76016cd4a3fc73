"""The fast path of fraud: reads payments from Kafka and sends alerts to Kafka, without waiting for Delta.

Spark keeps the set of all facts of each customer and each token. A subject with a new fact is judged again from all its
facts, by the same functions that make gold.fraud_alerts. So at any cut of `payment.events` the alerts that were sent
are exactly those of gold under the same rules, in whatever order events came, and however often.

The checkpoint is a memory that may be lost: it is built again from the topic, and no alert is sent a second time.
"""

import asyncio
import re
from dataclasses import dataclass, field
from threading import Event
from typing import NoReturn

from pyspark.errors import StreamingQueryException
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as sf
from pyspark.sql.streaming.query import StreamingQuery

from analytics.catalog import column_of
from analytics.fraud.alerts import alerts_from_facts, as_published
from analytics.fraud.facts import EVENTS, FACT, SUBJECT, facts
from analytics.fraud.rules import Rules, load_rules
from analytics.fraud.sender import AlertSender
from analytics.ingest.bronze import bronze_rows
from analytics.ingest.quarantine import is_framed, wire_schema_id
from analytics.ingest.silver import valid_events
from analytics.ingest.writer_schemas import WriterSchemas
from analytics.lake import Lake, LakeFiles
from analytics.runtime.kafka_options import from_kafka
from analytics.runtime.session import scheduler_pool
from analytics.settings import LakeSettings
from shared.errors import OperatorError
from shared.recovery.crash_points import arm
from shared.schemas.codec import MAGIC, PREFIX
from shared.schemas.contract.event_schemas import Schemas, load_schemas
from shared.schemas.contract.upcasting import upcast_chain
from shared.schemas.registry import Registry

PAYMENTS = "payment.events"
POOL = "alerts"
MOST_IN_A_BATCH = 20_000
"""Messages in one batch while the stream catches up."""
UNKNOWN_SCHEMA = "written with an unknown schema, id "
STATE = {
    # State is on disk, so customers who are away take no memory.
    "spark.sql.streaming.stateStore.providerClass": (
        "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider"
    ),
    "spark.sql.streaming.stateStore.rocksdb.changelogCheckpointing.enabled": "true",
    "spark.sql.streaming.minBatchesToRetain": "5",
}


@dataclass
class AlertStream:
    """Sends alerts, each exactly once in effect: one sent again after a crash has the same bytes and the same id."""

    lake: Lake
    rules: Rules = field(default_factory=load_rules)
    schemas: Schemas = field(default_factory=load_schemas)
    _texts: dict[int, str] = field(default_factory=dict)
    """Schemas by id."""
    _unusable: set[int] = field(default_factory=set)
    """Schema ids that the registry does not have. Silver has such messages in quarantine."""
    _query: StreamingQuery | None = None
    _stopping: Event = field(default_factory=Event)
    sent: int = 0

    def judge_available(self) -> None:
        """Judges everything that is in the topic by now, and stops."""
        self._run(availableNow=True)

    def judge_until_stopped(self) -> None:
        """Judges payments as they come until `stop`, which another thread may call."""
        self._run(processingTime="0 seconds")

    def stop(self) -> None:
        self._stopping.set()
        if self._query:
            self._query.stop()

    def _run(self, **trigger: str | bool) -> None:
        arm(self.lake.settings.crash_at)
        self._texts |= asyncio.run(_registered(self.lake.settings, self.schemas))
        sender = AlertSender.open(self.lake, self.schemas)
        while not self._stopping.is_set():
            self._query = self._start(sender, **trigger)
            if self._stopping.is_set():  # stop() was called while the query started
                self._query.stop()
            try:
                self._query.awaitTermination()
                return
            except StreamingQueryException as error:
                self._add_unknown_schema(error)

    def _start(self, sender: AlertSender, **trigger: str | bool) -> StreamingQuery:
        session = self.lake.spark.newSession()
        for key, value in STATE.items():
            session.conf.set(key, value)

        def send_alerts(affected: DataFrame, _number: int) -> None:
            alerts = alerts_from_facts(facts_in_state(affected), self.rules)
            self.sent += sender.send(as_published(alerts).collect())

        with scheduler_pool(self.lake.spark, POOL):
            return (
                state_of_subjects(self._payments(session), self.rules)
                .writeStream.queryName("alerts")
                .outputMode("update")
                .foreachBatch(send_alerts)
                .option("checkpointLocation", checkpoint_of(self.lake, self.rules))
                .trigger(**trigger)  # type: ignore[arg-type]
                .start()
            )

    def _payments(self, session: SparkSession) -> DataFrame:
        """Reads rows as in silver, with duplicates: a set of facts removes them."""
        kafka = (
            from_kafka(session.readStream, self.lake.settings, [PAYMENTS])
            .option("startingOffsets", "earliest")
            .option("maxOffsetsPerTrigger", MOST_IN_A_BATCH)
            .load()
        )
        messages = bronze_rows(kafka).where(_fail_on_unknown_schema([*self._texts, *self._unusable]))
        return valid_events(messages, PAYMENTS, _of_facts(WriterSchemas(self._texts, self.schemas)))

    def _add_unknown_schema(self, error: StreamingQueryException) -> None:
        """Fetches a schema that is newer than the query. The failed batch is read again, with that schema.

        The id comes out of the error's text. The ingest asks for schemas before it decodes a batch, which is not
        possible here: the plan, schemas included, is fixed when a query with state starts, and a failing batch is
        Spark's only way to tell the driver something before state and offsets are committed.
        """
        found = re.search(rf"{UNKNOWN_SCHEMA}(\d+)", str(error))
        if not found:
            _give_up(error, self.lake, self.rules)
        schema_id = int(found[1])
        text = asyncio.run(_schema_text(self.lake.settings, schema_id))
        if text is None:
            self._unusable.add(schema_id)
        else:
            self._texts[schema_id] = text


def state_of_subjects(payments: DataFrame, rules: Rules) -> DataFrame:
    """One row per customer and token, with the set of all its facts. As a stream, this is the query's state."""
    kept = sf.collect_set(sf.struct(*FACT)).alias("facts")
    return facts(payments, rules).groupBy(*SUBJECT).agg(kept)


def facts_in_state(subjects: DataFrame) -> DataFrame:
    """Unpacks the facts of subjects into rows."""
    return subjects.select(*SUBJECT, sf.explode("facts").alias("it")).select(*SUBJECT, "it.*")


def checkpoint_of(lake: LakeFiles, rules: Rules) -> str:
    """Names the checkpoint. Other rules judge all of history again, so they have a checkpoint of their own."""
    return f"{lake.checkpoints('alerts')}/{rules.version:08x}"


async def _registered(settings: LakeSettings, schemas: Schemas) -> dict[int, str]:
    async with Registry(settings) as registry:
        ours = [schema for schema in schemas.all if schema.topic == PAYMENTS]
        ids = [await registry.lookup(schema) for schema in ours]
    return {schema_id: schema.text for schema_id, schema in zip(ids, ours, strict=True) if schema_id is not None}


async def _schema_text(settings: LakeSettings, schema_id: int) -> str | None:
    async with Registry(settings) as registry:
        return await registry.schema_text(schema_id)


def _of_facts(writers: WriterSchemas) -> WriterSchemas:
    """Keeps the schemas of events that are facts; others need not be decoded."""
    records = {n: upcast_chain(writers.schemas.upcasters, schema.record)[0] for n, schema in writers.readable.items()}
    wanted = [n for n, record in records.items() if column_of(record.rpartition(".")[2]) in EVENTS]
    return WriterSchemas({n: writers.texts[n] for n in wanted}, writers.schemas)


def _fail_on_unknown_schema(known: list[int]) -> Column:
    """A condition that is always true, or fails the batch at a message in wire format with another schema id."""
    is_known = sf.substring("value", 1, PREFIX.size).isin([PREFIX.pack(MAGIC, n) for n in known])
    failure = sf.raise_error(sf.concat(sf.lit(UNKNOWN_SCHEMA), wire_schema_id())).cast("boolean")
    return sf.when(is_framed() & ~is_known, failure).otherwise(True)


def _give_up(error: StreamingQueryException, lake: LakeFiles, rules: Rules) -> NoReturn:
    reason = str(error).splitlines()[0]
    raise OperatorError(
        f"The stream of alerts has stopped: {reason}",
        f"If Kafka no longer has what it had read, delete its memory, {checkpoint_of(lake, rules)}: "
        "it is built again from the topic, and no alert is lost or sent twice.",
    ) from error
