"""Measures the time from a payment in Kafka to the alert about it, at a steady rate, alone and with the tables."""

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
from analytics.lake import Lake
from analytics.serving.streaming_layer import start_refresh_loop
from infra.lake.spark import open_spark
from infra.settings import Settings
from services.common.money import Money
from services.payment.events import AuthorizationRequested, PaymentDeclined
from shared.envelope import now
from tests.bench.figures import Figure
from tests.roll import Press, ShopEvent

PER_SECOND = 200
WARMUP_SECONDS, SECONDS = 60, 60
LIMIT_SECONDS = 5.0
DECLINES = 4
"""Declined payments of a tester: with the last one, the rule `declines` is reached."""
WAIT_SECONDS = 60.0
PRICE = Money(1000, "EUR")


async def run(settings: Settings) -> list[Figure]:
    return await asyncio.to_thread(_run, settings)


def _run(settings: Settings) -> list[Figure]:
    spark = open_spark(settings)
    try:
        press, alerts = Press(settings), AlertTimes(settings)
        with alerts.listening(), _alerts(spark, settings):
            _measure(press, alerts, WARMUP_SECONDS)
            alone = _measure(press, alerts, SECONDS)
            with _tables(spark, settings):
                _measure(press, alerts, WARMUP_SECONDS)
                together = _measure(press, alerts, SECONDS)
    finally:
        spark.stop()
    return [*_figures("alerts alone", alone), *_figures("with ingest and gold", together)]


def _figures(how: str, latencies: list[float]) -> Iterator[Figure]:
    ranks = statistics.quantiles(latencies, n=100)
    rate = f"at {PER_SECOND} events/s"
    name = f"payment in Kafka to alert in the topic, {how}, {rate}"
    yield Figure(f"{name}, p95", ranks[94], LIMIT_SECONDS, "s", at_most=1)
    yield Figure(f"{name}, p50", ranks[49], LIMIT_SECONDS, "s")


def _measure(press: Press, alerts: "AlertTimes", seconds: float) -> list[float]:
    """Sends one card tester per second among many who just pay. Returns seconds since the last decline was sent."""
    sent: dict[str, float] = {}
    began = time.monotonic()
    for second in range(int(seconds)):
        tester = str(uuid7())
        honest = [it for _ in range((PER_SECOND - 2 * DECLINES) // 2) for it in _declined(str(uuid7()))]
        press.send([*honest, *(it for _ in range(DECLINES) for it in _declined(tester))])
        sent[tester] = time.monotonic()
        time.sleep(max(0.0, began + second + 1 - time.monotonic()))
    deadline = time.monotonic() + WAIT_SECONDS
    while sent.keys() - alerts.at.keys():
        assert time.monotonic() < deadline, f"no alert about {len(sent.keys() - alerts.at.keys())} of {len(sent)}"
        time.sleep(0.05)
    return [alerts.at[customer] - moment for customer, moment in sent.items()]


def _declined(customer: str) -> Iterator[ShopEvent]:
    payment_id, at = str(uuid7()), now()
    charge = (payment_id, str(uuid7()), customer, PRICE, "tok_declined")
    yield ShopEvent(f"payment:{payment_id}", 1, AuthorizationRequested(*charge), at, str(uuid7()))
    yield ShopEvent(f"payment:{payment_id}", 2, PaymentDeclined(*charge, "provider", ("no",)), at, str(uuid7()))


class AlertTimes:
    """The time at which a consumer sees the first alert about each customer."""

    def __init__(self, settings: Settings) -> None:
        self.at: dict[str, float] = {}
        self._settings = settings
        self._stopping = threading.Event()

    @contextmanager
    def listening(self) -> Iterator[None]:
        thread = threading.Thread(target=self._listen)
        thread.start()
        try:
            yield
        finally:
            self._stopping.set()
            thread.join()

    def _listen(self) -> None:
        options = {"bootstrap.servers": self._settings.kafka_bootstrap, "group.id": str(uuid7())}
        consumer = confluent_kafka.Consumer(options | {"auto.offset.reset": "earliest"})
        consumer.subscribe(["fraud.alerts"])
        while not self._stopping.is_set():
            for message in consumer.consume(500, timeout=0.1):
                value = message.value() or b""
                self.at.setdefault(value[43:79].decode(), time.monotonic())  # the second field, after an id of 36
        consumer.close()


@contextmanager
def _alerts(spark: SparkSession, settings: Settings) -> Iterator[None]:
    stream = AlertStream(Lake(spark, settings))
    thread = threading.Thread(target=stream.judge_until_stopped)
    thread.start()
    try:
        yield
    finally:
        stream.stop()
        thread.join()


@contextmanager
def _tables(spark: SparkSession, settings: Settings) -> Iterator[None]:
    ingest, gold = start_ingest(Lake(spark, settings)), start_refresh_loop(Lake(spark, settings))
    try:
        yield
    finally:
        stop(ingest)
        gold.stop()
