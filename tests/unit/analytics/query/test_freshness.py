"""Freshness of the tables, measured without Spark, also while Kafka is down."""

import asyncio
import gc
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pyarrow as pa
import pytest
from deltalake import CommitProperties, write_deltalake

from analytics.catalog import TOPICS
from analytics.lake import LakeFiles
from analytics.log.commits import IngestCommit
from analytics.query.delays import measure_delays
from analytics.query.freshness import measure_freshness, reached_by
from infra.cli.commands.lake.pages import lake_line
from infra.local.processes.ports import free_ports
from infra.settings import Settings
from tests.unit.analytics.delta import backdate, commit

NOON = datetime(2026, 11, 16, 12, tzinfo=UTC)
OFFSETS = {"cart.events": {"0": 7, "1": 2}, "order.events": {"0": 5}}


@pytest.fixture
def lake(tmp_path: Path) -> LakeFiles:
    """A lake whose Kafka does not answer."""
    return LakeFiles(Settings.load(home=tmp_path, kafka_bootstrap=f"127.0.0.1:{free_ports(1)[0]}"))


def test_without_kafka_the_tables_are_still_listed(lake: LakeFiles) -> None:
    commit(lake, "silver.cart_events", [{"event_id": "a"}, {"event_id": "b"}], offsets=OFFSETS)
    commit(lake, "silver.cart_events", [{"event_id": "c"}], offsets=OFFSETS)
    fresh = asyncio.run(measure_freshness(lake))
    gc.collect()  # a Kafka client that was left open would be reported now
    [table] = fresh.tables
    assert (table.name, table.rows, table.files, table.version, table.behind) == ("silver.cart_events", 3, 2, 1, None)
    assert datetime.now(UTC) - table.committed < timedelta(minutes=1)
    assert fresh.kafka == f"Kafka at {lake.settings.kafka_bootstrap} does not answer"
    assert lake_line(lake.settings).startswith("behind Kafka: silver not known; last commit ")


def test_without_a_lake_the_status_says_how_to_make_one(lake: LakeFiles) -> None:
    assert lake_line(lake.settings) == "none yet; fill it with: till lake run"


def test_a_table_is_compared_with_the_topics_that_it_is_made_from(lake: LakeFiles) -> None:
    for name in ("bronze.events", "silver.cart_events", "gold.orders"):
        commit(lake, name, [], offsets=OFFSETS)
    commit(lake, "silver.quarantine", [])
    assert reached_by(lake, "silver.cart_events") == {"cart.events": OFFSETS["cart.events"]}
    for name in ("bronze.events", "silver.quarantine", "gold.orders"):
        assert reached_by(lake, name) == OFFSETS
    assert reached_by(lake, "gold.funnel") is None


def test_the_delay_of_a_batch_ends_when_the_last_table_has_it(lake: LakeFiles) -> None:
    for batch in range(2):
        came = [NOON + timedelta(minutes=batch, seconds=second) for second in (0, 4)]
        _ingest(lake, "bronze.events", batch, came, visible=NOON + timedelta(minutes=batch, seconds=5))
        for seconds, table in zip((6, 7.5, 7, 6.5), TOPICS.values(), strict=True):
            _ingest(lake, f"silver.{table}", batch, [], visible=NOON + timedelta(minutes=batch, seconds=seconds))
    _ingest(lake, "bronze.events", 2, [NOON], visible=NOON + timedelta(minutes=9))
    for table in [*TOPICS.values()][1:]:
        _ingest(lake, f"silver.{table}", 2, [], visible=NOON + timedelta(minutes=9))
    found = measure_delays(lake)
    assert [(it.visible, it.newest, it.oldest) for it in found] == [
        (NOON + timedelta(seconds=7.5), 3.5, 7.5),
        (NOON + timedelta(minutes=1, seconds=7.5), 3.5, 7.5),
    ], "the third batch is not in all tables yet"


def _ingest(lake: LakeFiles, name: str, batch: int, came: list[datetime], visible: datetime) -> None:
    metadata = IngestCommit("g", batch, {}).metadata()
    write_deltalake(
        lake.path(name),
        pa.table({"kafka_time": pa.array(came, pa.timestamp("us", "UTC"))}),
        mode="append",
        commit_properties=CommitProperties(custom_metadata={"userMetadata": metadata}),
    )
    backdate(lake, name, batch, int(visible.timestamp() * 1000))
