"""Verifies that streamed gold and served tables are what a batch from bronze computes: every table, row by row."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby

from pyspark.sql import DataFrame

from analytics.comparison import Difference, compare
from analytics.incremental.definition import GoldTable
from analytics.incremental.merge import own_session
from analytics.incremental.refresh import InputsOf
from analytics.lake import Lake
from analytics.log.commits import ComputedCommit
from analytics.log.cut import Cut
from analytics.log.progress import last_computed
from analytics.models import GOLD
from analytics.serving.serving_view import read_serving
from analytics.serving.silver_rebuild import rebuild_silver

RULE = (
    "A gold table is a function of the set of events before a cut: no clock, no order of arrival and no size of "
    "batches enters it. Silver has each event once, and every commit names its cut. So a batch from bronze at the "
    "same cut must give the same rows, late and repeated events included."
)


@dataclass(frozen=True)
class Verdict:
    """Result for one table: its difference from a batch at the same cut."""

    name: str
    cut: Cut
    difference: Difference

    @property
    def equal(self) -> bool:
        return self.difference.none


@dataclass(frozen=True)
class Verification:
    verdicts: tuple[Verdict, ...]
    rule: str = RULE

    @property
    def equal(self) -> bool:
        return all(verdict.equal for verdict in self.verdicts)


@dataclass(frozen=True)
class _Claim:
    """A table whose commit claims to have seen a cut."""

    name: str
    table: GoldTable
    cut: Cut
    rows: DataFrame


def verify(
    lake: Lake,
    progress: Callable[[str], None] = lambda _line: None,
    tables: Sequence[GoldTable] = GOLD,
) -> Verification:
    """Compares gold and, where there is a batch layer, what Lambda serves with bronze, each at the cut it has seen."""
    lake = lake.in_session(own_session(lake.spark))
    claims = sorted(_claims(lake, tables), key=lambda claim: (str(claim.cut), claim.table.name))
    verdicts: list[Verdict] = []
    for _, same_cut in groupby(claims, key=lambda claim: claim.cut):
        group = list(same_cut)
        progress(f"reading bronze up to batch {group[0].cut.batch} of the ingest")
        with rebuild_silver(lake, group[0].cut, "verify") as inputs:
            for verdict in _verdicts(lake, group, inputs):
                progress(f"{verdict.name}: {'equal' if verdict.equal else 'NOT EQUAL'}")
                verdicts.append(verdict)
    return Verification(tuple(verdicts))


def _claims(lake: Lake, tables: Sequence[GoldTable]) -> Iterator[_Claim]:
    for table in tables:
        if gold := lake.log(f"gold.{table.name}").newest(ComputedCommit):
            rows = lake.read(f"gold.{table.name}", gold.latest)
            yield _Claim(f"gold.{table.name}", table, gold.commit.cut, rows)
        served = read_serving(lake, table.name)
        if served is not None:
            newest = last_computed(lake, f"speed.{table.name}") or last_computed(lake, f"batch.{table.name}")
            assert newest
            yield _Claim(f"serving.{table.name}", table, newest.cut, served)


def _verdicts(lake: Lake, claims: Sequence[_Claim], inputs: InputsOf) -> Iterator[Verdict]:
    """Compares each claim with its table computed once. Both sides are stored first, as `compare` requires."""
    folder = lake.scratch("verify")
    for _, same_table in groupby(claims, key=lambda claim: claim.table.name):
        group = list(same_table)
        table = group[0].table
        expected = _stored(lake, f"{folder}/expected/{table.name}", table.compute(inputs(table.scope)))
        for claim in group:
            rows = claim.rows
            if claim.name.startswith("serving."):
                rows = _stored(lake, f"{folder}/{claim.name}", rows)
            yield Verdict(claim.name, claim.cut, compare(rows, expected, claim.table.key))


def _stored(lake: Lake, path: str, rows: DataFrame) -> DataFrame:
    rows.write.mode("overwrite").parquet(path)
    return lake.spark.read.parquet(path)
