"""How far tables are: the newest batch, the current cut, and the version for a position in Kafka. Needs no Spark."""

from typing import TYPE_CHECKING

from analytics.catalog import SILVER_TABLES
from analytics.log.commits import ComputedCommit, IngestCommit, ProgressCommit
from analytics.log.cut import Cut
from analytics.log.offsets import Offsets, covers, total
from analytics.log.table_log import Version
from shared.errors import OperatorError

if TYPE_CHECKING:
    from analytics.lake import LakeFiles


def last_ingested(lake: "LakeFiles", table: str = "bronze.events") -> IngestCommit | None:
    """Returns the newest batch that the table has."""
    span = lake.log(table).newest(IngestCommit)
    return span.commit if span else None


def last_computed(lake: "LakeFiles", table: str) -> ComputedCommit | None:
    """Returns the newest commit of a computed table; None where the table is missing or was never filled."""
    span = lake.log(table).newest(ComputedCommit)
    return span.commit if span else None


def ingested_events(lake: "LakeFiles") -> int:
    """Counts the messages that the ingest has read from Kafka."""
    commit = last_ingested(lake)
    return total(commit.offsets) if commit else 0


def rows_written(lake: "LakeFiles", table: str, commit: IngestCommit) -> int | None:
    """Counts the rows that a batch added, if nothing but a compaction was written to the table since."""
    for version in lake.log(table).versions(2):
        if version.commit == commit:
            return version.rows
    return None


def current_cut(lake: "LakeFiles") -> Cut | None:
    """Returns the newest batch that all silver tables have; some of them may have the next one already.

    Commits of compactions and of retries count to the batch before them: they ingest nothing.
    """
    newest = (lake.log(f"silver.{table}").newest(IngestCommit) for table in SILVER_TABLES)
    candidates = {span.commit.batch_id: span.commit for span in newest if span}
    for batch_id, commit in candidates.items():
        found = {table: _version_after(lake, table, batch_id) for table in SILVER_TABLES}
        silver = {table: version for table, version in found.items() if version is not None}
        if len(silver) == len(SILVER_TABLES):
            return Cut(silver, commit.generation, commit.batch, commit.offsets)
    return None


def require_cut(lake: "LakeFiles") -> Cut:
    """Returns the current cut, or says how to fill the lake."""
    cut = current_cut(lake)
    if cut is None:
        raise OperatorError("There is nothing in the lake yet.", "Fill it with: till lake run")
    return cut


def version_covering(lake: "LakeFiles", table: str, wanted: Offsets) -> Version | None:
    """Returns the oldest version that has all messages before these offsets. It may have more: filter by offset."""
    found = None
    for span in lake.log(table).spans(ProgressCommit):
        if not covers(span.commit.reached, wanted):
            break
        found = span.versions[-1]
    return found


def _version_after(lake: "LakeFiles", table: str, batch_id: tuple[str, int]) -> int | None:
    """Returns the newest version that has this batch of the ingest and no later one."""
    spans = lake.log(f"silver.{table}").spans(IngestCommit)
    return next((span.latest for span in spans if span.commit.batch_id == batch_id), None)
