"""The metadata of commits, read back from the log without Spark."""

import pyarrow as pa
import pytest
from deltalake import CommitProperties, write_deltalake

from analytics.lake import LakeFiles
from analytics.log import table_log
from analytics.log.commits import IngestCommit, RetryCommit, from_metadata
from analytics.log.offsets import covers
from analytics.log.progress import last_ingested, version_covering


def write(lake: LakeFiles, metadata: str) -> None:
    properties = CommitProperties(custom_metadata={"userMetadata": metadata})
    table = pa.table({"offset": [1]})
    write_deltalake(lake.path("bronze.events"), table, mode="append", commit_properties=properties)


def batch(number: int) -> IngestCommit:
    return IngestCommit("g", number, {"cart.events": {"0": 10 * number, "1": 5 * number}}, {"cart.events": "id"})


def test_the_last_ingested_batch_is_found_behind_commits_of_others(lake: LakeFiles) -> None:
    assert last_ingested(lake) is None
    for number in range(3):
        write(lake, batch(number).metadata())
    write(lake, "")
    write(lake, "not json")
    write(lake, '{"query": "retry"}')
    assert last_ingested(lake) == batch(2)
    retried = lake.log("bronze.events").newest(RetryCommit)
    assert retried
    assert retried.version == 5


def test_versions_come_newest_first_however_long_the_log_is(lake: LakeFiles, monkeypatch: pytest.MonkeyPatch) -> None:
    for number in range(6):
        write(lake, batch(number).metadata())
    monkeypatch.setattr(table_log, "WINDOWS", (2, 3, None))
    assert [version.number for version in lake.log("bronze.events").versions()] == [5, 4, 3, 2, 1, 0]
    assert [version.number for version in lake.log("bronze.events").versions(2)] == [5, 4]


def test_the_version_for_a_position_in_kafka_is_the_oldest_that_has_all_messages_before_it(lake: LakeFiles) -> None:
    for number in range(5):
        write(lake, batch(number).metadata())
    found = version_covering(lake, "bronze.events", {"cart.events": {"0": 11, "1": 15}})
    assert found
    assert found.number == 3
    assert version_covering(lake, "bronze.events", {"cart.events": {"0": 1000}}) is None


def test_a_partition_that_was_never_read_is_not_covered() -> None:
    assert covers(batch(2).offsets, {"cart.events": {"0": 20}})
    assert not covers(batch(2).offsets, {"cart.events": {"0": 21}})
    assert not covers(batch(2).offsets, {"cart.events": {"7": 1}})
    assert not covers(batch(2).offsets, {"order.events": {"0": 1}})


CUT = '"silver": {"cart_events": 4}, "generation": "g", "batch": 2, "offsets": {"cart.events": {"0": 9}}, "logic": 3'
STORED = [
    '{"query": "ingest", "generation": "g", "batch": 2, "offsets": {"cart.events": {"0": 9}}, '
    '"topics": {"cart.events": "i"}}',
    '{"query": "retry"}',
    f'{{"query": "gold", {CUT}}}',
    f'{{"query": "gold", {CUT}, "before": 7}}',
    f'{{"query": "gold", {CUT}, "undone": 8}}',
    f'{{"query": "batch", {CUT}}}',
    f'{{"query": "replay", {CUT}}}',
    f'{{"query": "speed", {CUT}, "base": 5, "served": {{"unit": ["cart_id"]}}}}',
]
"""Metadata as lakes have stored it from the beginning. A key that changes makes their tables unreadable."""


@pytest.mark.parametrize("metadata", STORED)
def test_stored_metadata_is_read_and_written_with_the_same_keys(metadata: str) -> None:
    commit = from_metadata(metadata)
    assert commit
    assert commit.metadata() == metadata


def test_an_ingest_of_an_older_lake_names_no_topics() -> None:
    commit = from_metadata('{"query": "ingest", "generation": "g", "batch": 2, "offsets": {}}')
    assert commit == IngestCommit("g", 2, {}, {})


@pytest.mark.parametrize("metadata", [None, "", "{", "[]", '"text"', '{"query": "another"}', '{"query": "gold"}'])
def test_metadata_of_others_is_no_commit_of_the_lake(metadata: str | None) -> None:
    assert from_metadata(metadata) is None


def test_a_span_includes_the_compactions_after_a_commit(lake: LakeFiles) -> None:
    for metadata in (batch(0).metadata(), "", batch(1).metadata(), '{"query": "retry"}', ""):
        write(lake, metadata)
    newest, oldest = lake.log("bronze.events").spans(IngestCommit)
    assert (newest.commit, newest.version, newest.latest) == (batch(1), 2, 4)
    assert (oldest.commit, oldest.version, oldest.latest) == (batch(0), 0, 1)
