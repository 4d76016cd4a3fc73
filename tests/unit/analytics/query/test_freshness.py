"""How fresh a lake is, as far as it can be told without Spark, and with Kafka away."""

import asyncio
import gc
import json
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pyarrow as pa
import pytest
from deltalake import CommitProperties, write_deltalake

from analytics.paths import TOPICS
from analytics.reading.delays import delays
from analytics.reading.freshness import freshness, reached_by
from infra.cli.lake_pages import lake_line
from infra.local.ports import free_ports
from shared.settings import Settings
from tests.unit.lake.delta import backdate, commit

NOON = datetime(2026, 11, 16, 12, tzinfo=UTC)
OFFSETS = {"cart.events": {"0": 7, "1": 2}, "order.events": {"0": 5}}


@pytest.fixture
def lake(tmp_path: Path) -> Settings:
    """Its Kafka is not there."""
    return Settings.load(home=tmp_path, kafka_bootstrap=f"127.0.0.1:{free_ports(1)[0]}")


def test_without_kafka_the_tables_are_still_told_of(lake: Settings) -> None:
    commit(lake, "silver.cart_events", [{"event_id": "a"}, {"event_id": "b"}], offsets=OFFSETS)
    commit(lake, "silver.cart_events", [{"event_id": "c"}], offsets=OFFSETS)
    fresh = asyncio.run(freshness(lake))
    gc.collect()  # a client of Kafka that was left open would be heard of now
    [table] = fresh.tables
    assert (table.name, table.rows, table.files, table.version, table.behind) == ("silver.cart_events", 3, 2, 1, None)
    assert datetime.now(UTC) - table.committed < timedelta(minutes=1)
    assert fresh.kafka == f"Kafka at {lake.kafka_bootstrap} does not answer"
    assert lake_line(lake).startswith("behind Kafka: silver not known; last commit ")


def test_without_a_lake_a_status_says_how_to_get_one(lake: Settings) -> None:
    assert lake_line(lake) == "none yet; it is made by: till lake run"


def test_a_table_has_to_do_with_the_topics_that_it_is_made_from(lake: Settings) -> None:
    for name in ("bronze.events", "silver.cart_events", "gold.orders"):
        commit(lake, name, [], offsets=OFFSETS)
    commit(lake, "silver.quarantine", [])
    assert reached_by(lake, "silver.cart_events") == {"cart.events": OFFSETS["cart.events"]}
    for name in ("bronze.events", "silver.quarantine", "gold.orders"):
        assert reached_by(lake, name) == OFFSETS
    assert reached_by(lake, "gold.funnel") is None


def test_a_batch_took_from_its_messages_until_the_last_table_had_it(lake: Settings) -> None:
    for batch in range(2):
        came = [NOON + timedelta(minutes=batch, seconds=second) for second in (0, 4)]
        _ingest(lake, "bronze.events", batch, came, visible=NOON + timedelta(minutes=batch, seconds=5))
        for seconds, table in zip((6, 7.5, 7, 6.5), TOPICS.values(), strict=True):
            _ingest(lake, f"silver.{table}", batch, [], visible=NOON + timedelta(minutes=batch, seconds=seconds))
    _ingest(lake, "bronze.events", 2, [NOON], visible=NOON + timedelta(minutes=9))
    for table in [*TOPICS.values()][1:]:
        _ingest(lake, f"silver.{table}", 2, [], visible=NOON + timedelta(minutes=9))
    found = delays(lake)
    assert [(it.visible, it.newest, it.oldest) for it in found] == [
        (NOON + timedelta(seconds=7.5), 3.5, 7.5),
        (NOON + timedelta(minutes=1, seconds=7.5), 3.5, 7.5),
    ], "and the third is not in all tables yet"


def _ingest(lake: Settings, name: str, batch: int, came: list[datetime], visible: datetime) -> None:
    said = json.dumps({"query": "ingest", "generation": "g", "batch": batch, "offsets": {}})
    write_deltalake(
        str(Path(lake.lake, *name.split("."))),
        pa.table({"kafka_time": pa.array(came, pa.timestamp("us", "UTC"))}),
        mode="append",
        commit_properties=CommitProperties(custom_metadata={"userMetadata": said}),
    )
    backdate(lake, name, batch, int(visible.timestamp() * 1000))
