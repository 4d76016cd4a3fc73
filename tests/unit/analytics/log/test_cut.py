"""Where silver is: at the newest batch that all of its tables have, though some may be ahead of it."""

import json
from pathlib import Path

import pyarrow as pa
import pytest
from deltalake import CommitProperties, write_deltalake

from analytics.cut import TABLES, present
from shared.settings import Settings


@pytest.fixture
def lake(tmp_path: Path) -> Settings:
    return Settings.load(home=tmp_path)


def test_without_a_batch_in_all_tables_there_is_no_cut(lake: Settings) -> None:
    assert present(lake) is None
    for table in TABLES[1:]:
        ingest(lake, table, 0)
    assert present(lake) is None


def test_tables_that_are_ahead_are_shown_as_they_were(lake: Settings) -> None:
    for batch in (0, 1):
        for table in TABLES:
            ingest(lake, table, batch)
    first, *_, last = TABLES
    compact(lake, first)
    ingest(lake, first, 2)
    ingest(lake, last, 2)
    cut = present(lake)
    assert cut
    assert (cut.generation, cut.batch, cut.offsets) == ("g", 1, {"cart.events": {"0": 1}})
    assert cut.silver == dict.fromkeys(TABLES, 1) | {first: 2}, "a compaction ingests nothing"


def test_a_batch_of_a_new_generation_counts_when_all_have_it(lake: Settings) -> None:
    for table in TABLES:
        ingest(lake, table, 57)
    for n, table in enumerate(TABLES):
        cut = present(lake)
        assert cut
        assert (cut.generation, cut.batch) == ("g", 57), n
        ingest(lake, table, 0, "another")
    cut = present(lake)
    assert cut
    assert (cut.generation, cut.batch) == ("another", 0)


def ingest(lake: Settings, table: str, batch: int, generation: str = "g") -> None:
    offsets = {"cart.events": {"0": batch}}
    _write(lake, table, {"query": "ingest", "generation": generation, "batch": batch, "offsets": offsets})


def compact(lake: Settings, table: str) -> None:
    _write(lake, table, {})


def _write(lake: Settings, table: str, said: dict[str, object]) -> None:
    write_deltalake(
        str(Path(lake.lake, "silver", table)),
        pa.table({"event_id": pa.array(["e"])}),
        mode="append",
        commit_properties=CommitProperties(custom_metadata={"userMetadata": json.dumps(said)}),
    )
