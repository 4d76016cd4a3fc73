"""What commits say of themselves, read back without Spark."""

from pathlib import Path

import pyarrow as pa
import pytest
from deltalake import CommitProperties, write_deltalake

from analytics import commits
from analytics.commits import Commit, covers, ingested, newest, version_covering, versions
from shared.settings import Settings


@pytest.fixture
def lake(tmp_path: Path) -> Settings:
    return Settings(lake=str(tmp_path))


def write(lake: Settings, metadata: str) -> None:
    said = CommitProperties(custom_metadata={"userMetadata": metadata})
    table = pa.table({"offset": [1]})
    write_deltalake(f"{lake.lake}/bronze/events", table, mode="append", commit_properties=said)


def batch(number: int) -> Commit:
    return Commit("g", number, {"cart.events": {"0": 10 * number, "1": 5 * number}}, {"cart.events": "id"})


def test_how_far_the_ingest_is_survives_commits_of_others(lake: Settings) -> None:
    assert ingested(lake) is None
    for number in range(3):
        write(lake, batch(number).metadata)
    write(lake, "")
    write(lake, "not json")
    write(lake, '{"query": "retry"}')
    assert ingested(lake) == batch(2)
    retried = newest(lake, "bronze.events", "retry")
    assert retried
    assert retried.number == 5


def test_versions_come_newest_first_however_long_the_log_is(lake: Settings, monkeypatch: pytest.MonkeyPatch) -> None:
    for number in range(6):
        write(lake, batch(number).metadata)
    monkeypatch.setattr(commits, "WINDOWS", (2, 3, None))
    assert [version.number for version in versions(lake, "bronze.events")] == [5, 4, 3, 2, 1, 0]
    assert [version.number for version in versions(lake, "bronze.events", 2)] == [5, 4]


def test_the_version_for_a_place_in_kafka_is_the_oldest_that_has_all_before_it(lake: Settings) -> None:
    for number in range(5):
        write(lake, batch(number).metadata)
    found = version_covering(lake, "bronze.events", {"cart.events": {"0": 11, "1": 15}})
    assert found
    assert found.number == 3
    assert version_covering(lake, "bronze.events", {"cart.events": {"0": 1000}}) is None


def test_a_partition_that_nobody_has_read_is_not_covered() -> None:
    assert covers(batch(2).offsets, {"cart.events": {"0": 20}})
    assert not covers(batch(2).offsets, {"cart.events": {"0": 21}})
    assert not covers(batch(2).offsets, {"cart.events": {"7": 1}})
    assert not covers(batch(2).offsets, {"order.events": {"0": 1}})
