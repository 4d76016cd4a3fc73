"""Faults that the lake survives: a driver killed at every crash point, a lost checkpoint, a topic created again.

Invalid messages, unknown schemas, late events and skewed clocks are in tests/integration/analytics/test_ingest.py.
"""

import asyncio
import os
import re
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import confluent_kafka
import pytest
from confluent_kafka.admin import AdminClient
from pyspark.errors import StreamingQueryException
from pyspark.sql import SparkSession

import analytics
from analytics.ingest.recovery import accept_topics
from analytics.ingest.retry import retry_quarantine
from analytics.ingest.stream import ingest_available
from analytics.lake import Lake
from analytics.log.progress import last_ingested
from infra.local.stack import up
from infra.local.throwaway import settings_of, throwaway
from infra.settings import Settings
from shared.errors import OperatorError
from tests.faults.lake_books import compare, faults, rows
from tests.faults.lake_kills import kill_repeatedly
from tests.integration.shared.topics import Record, create_topics, delete_topics, read_topic, send
from tests.roll import Press, ShopEvent, numbered, shopping
from tests.till import TILL
from tests.unit.analytics.fraud.payments import failed

pytestmark = [pytest.mark.slow, pytest.mark.timeout(600)]

KILLED_AT = ["bronze written, silver not", "all written, checkpoint not"]
"""Each of these starts and kills a Spark of its own; `python -m tests.faults.lake_kills 10` does it more often."""
CUT_AT = ["batch planned, nothing written", "silver written, quarantine not"]
ELSEWHERE = ["mended, still in quarantine"]
OF_ALERTS = ["alerts found, not sent", "alerts sent, not committed"]
BATCH = 150
QUICK = "spark.driver.memory=1g spark.driver.extraJavaOptions='-XX:TieredStopAtLevel=1 -XX:ReservedCodeCacheSize=256m'"


@dataclass
class ShopAndLake:
    environment: dict[str, str]
    settings: Settings
    press: Press
    poison: list[str] = field(default_factory=list)

    def sell(self, carts: int = 4) -> list[ShopEvent]:
        """Sends events of some carts, one of them with an invalid message."""
        shop_events = shopping(carts)
        self.press.send(shop_events[1:])
        record = self.press.record(shop_events[0])
        send(self.settings, shop_events[0].topic, [record._replace(value=(record.value or b"") + b"!")])
        self.poison.append(shop_events[0].event_id)
        return shop_events

    def faults(self) -> list[str]:
        return faults(self.settings, self.poison)


@pytest.fixture(scope="module")
def lake() -> Iterator[ShopAndLake]:
    """Starts servers of its own: topics are deleted here."""
    with throwaway() as environment:
        asyncio.run(up(settings_of(environment), servers_only=True))
        environment |= {"TILL_LAKE_BATCH_EVENTS": str(BATCH), "TILL_SPARK_CONFIG": QUICK}
        settings = settings_of(environment)
        yield ShopAndLake(environment, settings, Press(settings))


def test_every_crash_point_of_the_lake_is_tested_here() -> None:
    sources = [path.read_text() for path in Path(analytics.__path__[0]).rglob("*.py")]
    named = {point for source in sources for point in re.findall(r'\bcrashpoint\("([^"]+)"\)', source)}
    assert named == {*KILLED_AT, *CUT_AT, *ELSEWHERE, *OF_ALERTS}


def test_a_driver_killed_at_each_crash_point_loses_and_repeats_nothing(
    lake: ShopAndLake, spark: SparkSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each run finds what the one before left, and gets one crash point further."""
    lake.sell(40)
    for point in KILLED_AT:
        assert run_driver(lake, point) == -signal.SIGKILL, point
    for point in CUT_AT:
        cut_off(lake, spark, monkeypatch, point)
    ingest_available(Lake(spark, lake.settings))
    assert lake.faults() == []
    commit = last_ingested(Lake(spark, lake.settings))
    assert commit
    assert commit.batch >= 3, "the checkpoint of the first run was used to the end"


def cut_off(lake: ShopAndLake, spark: SparkSession, monkeypatch: pytest.MonkeyPatch, point: str) -> None:
    with monkeypatch.context() as cut:
        cut.setattr("analytics.ingest.batches.crashpoint", cutting(point))
        with pytest.raises(StreamingQueryException, match="cut off here"):
            ingest_available(Lake(spark, lake.settings))


def run_driver(lake: ShopAndLake, crash_at: str) -> int:
    return run(lake, crash_at, sys.executable, "-m", "tests.faults.lake_driver")


def run(lake: ShopAndLake, crash_at: str, *command: str) -> int:
    environment = lake.environment | {"TILL_CRASH_AT": crash_at, "PYTHONPATH": os.getcwd()}
    with subprocess.Popen(command, env=environment, cwd=lake.environment["TILL_HOME"]) as process:
        return process.wait(300)


def test_a_driver_killed_at_random_while_the_shop_sells_loses_and_repeats_nothing() -> None:
    assert kill_repeatedly(2) == []


def test_a_killed_stream_of_alerts_sends_every_alert_once(lake: ShopAndLake) -> None:
    """The stream is killed before and after sending, with new payments each time."""
    for n, point in enumerate([*OF_ALERTS, ""]):
        customer = f"suspicious-{n}"
        lake.press.send(numbered(it for one in range(4) for it in failed(f"{customer}-{one}", customer, one)))
        assert run(lake, point, str(TILL), "lake", "alerts", "--once") == (-signal.SIGKILL if point else 0), point
    sent = read_topic(lake.settings, "fraud.alerts")
    assert len({record.header("ce_id") for record in sent}) == len(sent), "an alert was sent twice"
    windows = [sum(f"suspicious-{n}".encode() in (record.value or b"") for record in sent) for n in range(3)]
    assert windows == [2, 2, 2], "four declined payments are an alert in each of the two windows that see them"


def test_the_check_finds_lost_and_duplicated_events() -> None:
    record = Record(0, 0, b"cart:1", b"", (("ce_id", b"a"),), 0)
    records = {"cart.events": [record, record._replace(offset=1, headers=(("ce_id", b"b"),))]}
    places = [("cart.events", 0, 0), ("cart.events", 0, 1)]
    assert compare(records, places, {"cart.events": ["a"]}, ["b"], {"b"}) == []
    assert compare(records, places[:1], {"cart.events": ["a"]}, ["b"], {"b"}) == [
        "bronze has lost ('cart.events', 0, 1)"
    ]
    assert compare(records, places * 2, {"cart.events": ["a"]}, ["b"], {"b"}) == [
        f"bronze has ('cart.events', 0, {offset}) more than once, or should not have it" for offset in (0, 1)
    ]
    assert compare(records, places, {"cart.events": []}, ["b"], {"b"}) == ["silver has lost a"]
    assert compare(records, places, {"cart.events": ["a", "a"]}, ["b"], {"b"}) == [
        "silver has a more than once, or should not have it"
    ]
    assert compare(records, places, {"cart.events": ["a", "b"]}, [], {"b"}) == [
        "silver has b more than once, or should not have it",
        "quarantine has lost b",
    ]


def test_after_a_lost_checkpoint_an_interrupted_batch_is_finished(
    lake: ShopAndLake, spark: SparkSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    lake.sell()
    cut_off(lake, spark, monkeypatch, "bronze written, silver not")
    before = last_ingested(Lake(spark, lake.settings))
    assert before
    assert lake.faults() != [], "silver is complete, so the batch was not interrupted"
    shutil.rmtree(Lake(spark, lake.settings).checkpoint("ingest", before.generation))
    lake.sell()
    ingest_available(Lake(spark, lake.settings))
    after = last_ingested(Lake(spark, lake.settings))
    assert after
    assert after.generation != before.generation, "Delta would ignore batches under the old one"
    assert lake.faults() == []


def test_a_checkpoint_from_a_backup_is_not_trusted(lake: ShopAndLake, spark: SparkSession, tmp_path: Path) -> None:
    """Its next batch would have a number that Delta has seen, and be ignored."""
    last = last_ingested(Lake(spark, lake.settings))
    assert last
    checkpoint = Path(Lake(spark, lake.settings).checkpoint("ingest", last.generation))
    shutil.copytree(checkpoint, tmp_path / "backup")
    lake.sell()
    ingest_available(Lake(spark, lake.settings))
    shutil.rmtree(checkpoint)
    shutil.copytree(tmp_path / "backup", checkpoint)
    lake.sell()
    ingest_available(Lake(spark, lake.settings))
    assert lake.faults() == []


def test_an_interrupted_retry_of_quarantine_can_be_repeated(
    lake: ShopAndLake, spark: SparkSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    mended, *others = lake.poison
    aside = spark.read.format("delta").load(f"{lake.settings.lake}/silver/quarantine").where(f"event_id = '{mended}'")
    value = "substring(value, 1, length(value) - 1) AS value"
    whole = [value if column == "value" else column for column in aside.columns]
    table = f"delta.`{lake.settings.lake}/silver/quarantine`"
    kept = aside.selectExpr(*whole).localCheckpoint()
    spark.sql(f"DELETE FROM {table} WHERE event_id = '{mended}'")
    kept.write.format("delta").mode("append").save(f"{lake.settings.lake}/silver/quarantine")

    with monkeypatch.context() as cut:
        cut.setattr("analytics.ingest.retry.crashpoint", cutting("mended, still in quarantine"))
        with pytest.raises(Cut):
            retry_quarantine(Lake(spark, lake.settings))
    assert mended in {row["event_id"] for row in rows(lake.settings, "silver.quarantine")}
    assert retry_quarantine(Lake(spark, lake.settings)) == 1
    lake.poison = others
    assert lake.faults() == []


class Cut(Exception):
    pass


def cutting(here: str) -> object:
    def crashpoint(point: str) -> None:
        if point == here:
            raise Cut("cut off here")

    return crashpoint


def test_messages_deleted_before_they_were_read_are_named(lake: ShopAndLake, spark: SparkSession) -> None:
    sold = lake.sell()
    admin = AdminClient({"bootstrap.servers": lake.settings.kafka_bootstrap})
    ends = {r.partition: r.offset + 1 for r in read_topic(lake.settings, "cart.events")}
    gone = [confluent_kafka.TopicPartition("cart.events", p, end) for p, end in ends.items()]
    for future in admin.delete_records(gone).values():
        future.result(20)
    with pytest.raises(OperatorError, match=r"Messages of cart.events were deleted before the lake has read them"):
        ingest_available(Lake(spark, lake.settings))
    accept_topics(Lake(spark, lake.settings), ["cart.events"])
    ingest_available(Lake(spark, lake.settings))
    orders = {row["event_id"] for row in rows(lake.settings, "silver.order_events")}
    assert {one.event_id for one in sold if one.topic == "order.events"} <= orders, (
        "events of another topic are missing"
    )


def test_a_topic_that_was_created_again_is_named_and_can_be_accepted(lake: ShopAndLake, spark: SparkSession) -> None:
    records = read_topic(lake.settings, "order.events")
    before = sorted(row["event_id"] for row in rows(lake.settings, "silver.order_events"))
    asyncio.run(delete_topics(lake.settings, ["order.events"]))
    asyncio.run(create_topics(lake.settings, {"order.events": 6}))
    send(lake.settings, "order.events", records)
    fresh = [shop_event for shop_event in shopping(1, seed=3) if shop_event.topic == "order.events"]
    lake.press.send(fresh)
    with pytest.raises(OperatorError, match=r"order.events is not the one .* deleted and created again") as refusal:
        ingest_available(Lake(spark, lake.settings))
    assert "till lake run --accept order.events" in refusal.value.hint
    accept_topics(Lake(spark, lake.settings), ["order.events"])
    ingest_available(Lake(spark, lake.settings))
    after = sorted(row["event_id"] for row in rows(lake.settings, "silver.order_events"))
    assert after == sorted([*before, *(shop_event.event_id for shop_event in fresh)]), (
        "an event that was sent again is in silver twice, or a new one is missing"
    )
