"""The fast path of fraud: payments from Kafka, alerts to Kafka. It does not wait for Delta and knows nothing of it.

Spark keeps, for each customer and each token, the set of all its facts. Whoever has a new one is judged anew from all
of them, by the same functions that make gold.fraud_alerts; so at any cut of `payment.events` the alerts that have been
sent are exactly those of gold under the same rules, in whatever order events came, and how often.

Its checkpoint is a memory that can be lost: it is built again from the topic, and what was sent is not sent again.
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

from analytics.fraud.alerts import alerts, as_published
from analytics.fraud.facts import EVENTS, FACT, SUBJECT, facts
from analytics.fraud.outbox import Outbox
from analytics.fraud.rules import Rules, load_rules
from analytics.fraud.windows import growth
from analytics.ingest.bronze import bronze_rows
from analytics.ingest.silver import sound
from analytics.ingest.writers import Writers
from analytics.kafka import source_options
from analytics.paths import checkpoints_of
from analytics.tables import column_of
from shared.codec import MAGIC, PREFIX
from shared.crashpoints import arm
from shared.errors import OperatorError
from shared.registry import Registry
from shared.schemas import Schemas, load_schemas
from shared.settings import Settings
from shared.upcasters import chain

PAYMENTS = "payment.events"
POOL = "alerts"
MOST_IN_A_BATCH = 20_000
"""Messages, while it catches up."""
UNHEARD_OF = "written with an unheard-of schema, id "
STATE = {
    # On disk: what is known of customers who are away takes no memory.
    "spark.sql.streaming.stateStore.providerClass": (
        "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider"
    ),
    "spark.sql.streaming.stateStore.rocksdb.changelogCheckpointing.enabled": "true",
    "spark.sql.streaming.minBatchesToRetain": "5",
}


@dataclass
class AlertStream:
    """Sends an alert once in effect. After a death it may be sent again: the same bytes under the same id."""

    spark: SparkSession
    settings: Settings
    rules: Rules = field(default_factory=load_rules)
    schemas: Schemas = field(default_factory=load_schemas)
    _texts: dict[int, str] = field(default_factory=dict)
    """Of schemas, by id."""
    _unknown: set[int] = field(default_factory=set)
    """Ids that the registry does not know."""
    _query: StreamingQuery | None = None
    _stopping: Event = field(default_factory=Event)
    sent: int = 0

    def bring_up_to_date(self) -> None:
        """Judge all that is in the topic by now, and stop."""
        self._run(availableNow=True)

    def keep_going(self) -> None:
        """Until `stop`, which another thread may call."""
        self._run(processingTime="0 seconds")

    def stop(self) -> None:
        self._stopping.set()
        if self._query:
            self._query.stop()

    def _run(self, **trigger: str | bool) -> None:
        arm(self.settings.crash_at)
        self._texts |= asyncio.run(_registered(self.settings, self.schemas))
        outbox = Outbox.opened(self.spark, self.settings, self.schemas)
        while not self._stopping.is_set():
            self._query = self._start(outbox, **trigger)
            if self._stopping.is_set():  # said while it started
                self._query.stop()
            try:
                self._query.awaitTermination()
                return
            except StreamingQueryException as error:
                self._learn(error)

    def _start(self, outbox: Outbox, **trigger: str | bool) -> StreamingQuery:
        session = self.spark.newSession()
        for key, value in STATE.items():
            session.conf.set(key, value)

        def take(touched: DataFrame, _number: int) -> None:
            judged_anew = alerts(growth(remembered(touched), self.rules), self.rules)
            self.sent += outbox.send(as_published(judged_anew).collect())

        context = self.spark.sparkContext
        context.setLocalProperty("spark.scheduler.pool", POOL)
        try:
            return (
                memory(self._payments(session), self.rules)
                .writeStream.queryName("alerts")
                .outputMode("update")
                .foreachBatch(take)
                .option("checkpointLocation", checkpoint_of(self.settings, self.rules))
                .trigger(**trigger)  # type: ignore[arg-type]
                .start()
            )
        finally:
            context.setLocalProperty("spark.scheduler.pool", None)  # type: ignore[arg-type]

    def _payments(self, session: SparkSession) -> DataFrame:
        """As in silver, but for duplicates: a set of facts has none."""
        kafka = (
            session.readStream.format("kafka")
            .options(**source_options(self.settings))
            .option("subscribe", PAYMENTS)
            .option("startingOffsets", "earliest")
            .option("maxOffsetsPerTrigger", MOST_IN_A_BATCH)
            .option("includeHeaders", "true")
            .load()
        )
        messages = bronze_rows(kafka).where(_stop_at_unheard_of([*self._texts, *self._unknown]))
        return sound(messages, PAYMENTS, _telling(Writers(self._texts, self.schemas)))

    def _learn(self, error: StreamingQueryException) -> None:
        """A schema that is newer than this query. The batch was not committed: it is read again, with that schema."""
        found = re.search(rf"{UNHEARD_OF}(\d+)", str(error))
        if not found:
            _give_up(error, self.settings, self.rules)
        schema_id = int(found[1])
        text = asyncio.run(_text(self.settings, schema_id))
        if text is None:
            self._unknown.add(schema_id)  # silver has the message in quarantine
        else:
            self._texts[schema_id] = text


def memory(payments: DataFrame, rules: Rules) -> DataFrame:
    """Of each customer and token, all facts."""
    kept = sf.collect_set(sf.struct(*FACT)).alias("facts")
    return facts(payments, rules).groupBy(*SUBJECT).agg(kept)


def remembered(touched: DataFrame) -> DataFrame:
    """The facts again."""
    return touched.select(*SUBJECT, sf.explode("facts").alias("it")).select(*SUBJECT, "it.*")


def checkpoint_of(settings: Settings, rules: Rules) -> str:
    """Other rules judge all of history anew, and so begin with a memory of their own."""
    return f"{checkpoints_of(settings, 'alerts')}/{rules.version:08x}"


async def _registered(settings: Settings, schemas: Schemas) -> dict[int, str]:
    async with Registry(settings) as registry:
        ours = [schema for schema in schemas.all if schema.topic == PAYMENTS]
        ids = [await registry.lookup(schema) for schema in ours]
    return {schema_id: schema.text for schema_id, schema in zip(ids, ours, strict=True) if schema_id is not None}


async def _text(settings: Settings, schema_id: int) -> str | None:
    async with Registry(settings) as registry:
        return await registry.schema_text(schema_id)


def _telling(writers: Writers) -> Writers:
    """Of events that are facts; the rest need not be decoded."""
    records = {n: chain(writers.schemas.upcasters, schema.record)[0] for n, schema in writers.readable.items()}
    wanted = [n for n, record in records.items() if column_of(record.rpartition(".")[2]) in EVENTS]
    return Writers({n: writers.texts[n] for n in wanted}, writers.schemas)


def _stop_at_unheard_of(known: list[int]) -> Column:
    """Always true; or the batch fails."""
    prefix, number = sf.substring("value", 1, PREFIX.size), sf.conv(sf.hex(sf.substring("value", 2, 4)), 16, 10)
    in_wire_format = (sf.length(prefix) == PREFIX.size) & (sf.substring("value", 1, 1) == sf.lit(bytes([MAGIC])))
    heard_of = prefix.isin([PREFIX.pack(MAGIC, n) for n in known])
    failure = sf.raise_error(sf.concat(sf.lit(UNHEARD_OF), number)).cast("boolean")
    return sf.when(in_wire_format & ~heard_of, failure).otherwise(True)


def _give_up(error: StreamingQueryException, settings: Settings, rules: Rules) -> NoReturn:
    said = str(error).splitlines()[0]
    raise OperatorError(
        f"The stream of alerts has stopped: {said}",
        f"If Kafka no longer has what it had read, delete its memory, {checkpoint_of(settings, rules)}: "
        "it is built again from the topic, and no alert is lost or sent twice.",
    ) from error
