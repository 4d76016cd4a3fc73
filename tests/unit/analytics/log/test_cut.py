"""The current cut of silver: the newest batch that all of its tables have, though some may be ahead of it."""

import pyarrow as pa
from deltalake import CommitProperties, write_deltalake

from analytics.catalog import SILVER_TABLES as TABLES
from analytics.lake import LakeFiles
from analytics.log.commits import IngestCommit
from analytics.log.progress import current_cut


def test_without_a_batch_in_all_tables_there_is_no_cut(lake: LakeFiles) -> None:
    assert current_cut(lake) is None
    for table in TABLES[1:]:
        ingest(lake, table, 0)
    assert current_cut(lake) is None


def test_tables_that_are_ahead_are_shown_as_they_were(lake: LakeFiles) -> None:
    for batch in (0, 1):
        for table in TABLES:
            ingest(lake, table, batch)
    first, *_, last = TABLES
    compact(lake, first)
    ingest(lake, first, 2)
    ingest(lake, last, 2)
    cut = current_cut(lake)
    assert cut
    assert (cut.generation, cut.batch, cut.offsets) == ("g", 1, {"cart.events": {"0": 1}})
    assert cut.silver == dict.fromkeys(TABLES, 1) | {first: 2}, "a compaction ingests nothing"


def test_a_batch_of_a_new_generation_counts_when_all_have_it(lake: LakeFiles) -> None:
    for table in TABLES:
        ingest(lake, table, 57)
    for n, table in enumerate(TABLES):
        cut = current_cut(lake)
        assert cut
        assert (cut.generation, cut.batch) == ("g", 57), n
        ingest(lake, table, 0, "another")
    cut = current_cut(lake)
    assert cut
    assert (cut.generation, cut.batch) == ("another", 0)


def ingest(lake: LakeFiles, table: str, batch: int, generation: str = "g") -> None:
    _write(lake, table, IngestCommit(generation, batch, {"cart.events": {"0": batch}}).metadata())


def compact(lake: LakeFiles, table: str) -> None:
    _write(lake, table, "")


def _write(lake: LakeFiles, table: str, metadata: str) -> None:
    write_deltalake(
        lake.path(f"silver.{table}"),
        pa.table({"event_id": pa.array(["e"])}),
        mode="append",
        commit_properties=CommitProperties(custom_metadata={"userMetadata": metadata}),
    )
