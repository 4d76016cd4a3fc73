"""From a payment in Kafka to the alert about it in the topic, at a steady rate: alone, and beside the tables."""

import asyncio
import statistics
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager

import confluent_kafka
from pyspark.sql import SparkSession
from uuid_utils import uuid7

from analytics.fraud.stream import AlertStream
from analytics.ingest.stream import start_ingest, stop
from analytics.layers.speed import start_gold
from infra.spark import open_spark
from services.payment.events import AuthorizationRequested, PaymentDeclined
from shared.envelope import now
from shared.money import Money
from shared.settings import Settings
from tests.bench.figures import Figure
from tests.roll import Press, Told

PER_SECOND = 200
WARMUP_SECONDS, SECONDS = 60, 60
MOST_SECONDS = 5.0
DECLINES = 4
"""With the last of these the rule `declines` is met."""
PATIENCE = 60.0
PRICE = Money(1000, "EUR")


async def run(settings: Settings) -> list[Figure]:
    return await asyncio.to_thread(_run, settings)


def _run(settings: Settings) -> list[Figure]:
    spark = open_spark(settings)
    try:
        press, heard = Press(settings), Heard(settings)
        with heard.listening(), _alerts(spark, settings):
            _measure(press, heard, WARMUP_SECONDS)
            alone = _measure(press, heard, SECONDS)
            with _tables(spark, settings):
                _measure(press, heard, WARMUP_SECONDS)
                beside = _measure(press, heard, SECONDS)
    finally:
        spark.stop()
    return [*_figures("alerts alone", alone), *_figures("beside ingest and gold", beside)]


def _figures(how: str, latencies: list[float]) -> Iterator[Figure]:
    ranks = statistics.quantiles(latencies, n=100)
    rate = f"at {PER_SECOND} events/s"
    yield Figure(f"payment in Kafka to alert in the topic, {how}, {rate}, p95", ranks[94], MOST_SECONDS, "s", at_most=1)
    yield Figure(f"payment in Kafka to alert in the topic, {how}, {rate}, p50", ranks[49], MOST_SECONDS, "s")


def _measure(press: Press, heard: "Heard", seconds: float) -> list[float]:
    """Each second one tester of cards among many who just pay. Seconds from the last decline's acknowledgement."""
    sent: dict[str, float] = {}
    began = time.monotonic()
    for second in range(int(seconds)):
        tester = str(uuid7())
        honest = [it for _ in range((PER_SECOND - 2 * DECLINES) // 2) for it in _declined(str(uuid7()))]
        press.send([*honest, *(it for _ in range(DECLINES) for it in _declined(tester))])
        sent[tester] = time.monotonic()
        time.sleep(max(0.0, began + second + 1 - time.monotonic()))
    deadline = time.monotonic() + PATIENCE
    while sent.keys() - heard.at.keys():
        assert time.monotonic() < deadline, f"no alert about {len(sent.keys() - heard.at.keys())} of {len(sent)}"
        time.sleep(0.05)
    return [heard.at[who] - moment for who, moment in sent.items()]


def _declined(customer: str) -> Iterator[Told]:
    payment_id, at = str(uuid7()), now()
    charge = (payment_id, str(uuid7()), customer, PRICE, "tok_declined")
    yield Told(f"payment:{payment_id}", 1, AuthorizationRequested(*charge), at, str(uuid7()))
    yield Told(f"payment:{payment_id}", 2, PaymentDeclined(*charge, "provider", ("no",)), at, str(uuid7()))


class Heard:
    """When the first alert about each customer was in the topic, as a consumer sees it."""

    def __init__(self, settings: Settings) -> None:
        self.at: dict[str, float] = {}
        self._settings = settings
        self._over = threading.Event()

    @contextmanager
    def listening(self) -> Iterator[None]:
        thread = threading.Thread(target=self._listen)
        thread.start()
        try:
            yield
        finally:
            self._over.set()
            thread.join()

    def _listen(self) -> None:
        options = {"bootstrap.servers": self._settings.kafka_bootstrap, "group.id": str(uuid7())}
        consumer = confluent_kafka.Consumer(options | {"auto.offset.reset": "earliest"})
        consumer.subscribe(["fraud.alerts"])
        while not self._over.is_set():
            for message in consumer.consume(500, timeout=0.1):
                value = message.value() or b""
                self.at.setdefault(value[43:79].decode(), time.monotonic())  # the second field, behind an id of 36
        consumer.close()


@contextmanager
def _alerts(spark: SparkSession, settings: Settings) -> Iterator[None]:
    stream = AlertStream(spark, settings)
    thread = threading.Thread(target=stream.keep_going)
    thread.start()
    try:
        yield
    finally:
        stream.stop()
        thread.join()


@contextmanager
def _tables(spark: SparkSession, settings: Settings) -> Iterator[None]:
    ingest, gold = start_ingest(spark, settings), start_gold(spark, settings)
    try:
        yield
    finally:
        stop(ingest)
        gold.stop()
