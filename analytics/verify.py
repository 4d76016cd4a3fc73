"""Whether what was streamed is what a batch would have computed: every gold table, row for row, both ways."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby

from pyspark.sql import DataFrame, SparkSession

from analytics.cut import Cut
from analytics.gold import GOLD
from analytics.gold.definition import Table
from analytics.layers.advancing import Everything
from analytics.layers.comparing import Difference, compare
from analytics.layers.rebuilding import rebuilt
from analytics.layers.serving import serving
from analytics.layers.writing import own_session, state_of
from analytics.tables import read
from shared.settings import Settings

RULE = (
    "A gold table is a function of the set of events before a cut: not of a clock, of the order in which they came, "
    "or of how they were cut into batches. Silver has each event once, and every commit names its cut. So a batch "
    "from bronze at the same cut has to give the same rows, late and repeated events included."
)


@dataclass(frozen=True)
class Verdict:
    name: str
    cut: Cut
    difference: Difference

    @property
    def equal(self) -> bool:
        return self.difference.none


@dataclass(frozen=True)
class Equality:
    verdicts: tuple[Verdict, ...]
    rule: str = RULE

    @property
    def equal(self) -> bool:
        return all(verdict.equal for verdict in self.verdicts)


@dataclass(frozen=True)
class _Claim:
    """A table that says it has seen a cut."""

    name: str
    table: Table
    cut: Cut
    rows: DataFrame


def verify(
    spark: SparkSession,
    settings: Settings,
    progress: Callable[[str], None] = lambda _line: None,
    tables: Sequence[Table] = GOLD,
) -> Equality:
    """Gold and, where there is a batch layer, what Lambda serves: each against bronze, at the cut that it has seen."""
    session = own_session(spark)
    claims = sorted(_claims(session, settings, tables), key=lambda claim: (claim.cut.metadata(""), claim.table.name))
    verdicts: list[Verdict] = []
    for _, together in groupby(claims, key=lambda claim: claim.cut):
        group = list(together)
        progress(f"reading bronze up to batch {group[0].cut.batch} of the ingest")
        with rebuilt(session, settings, group[0].cut, "verify") as silver:
            for verdict in _judged(session, settings, group, silver):
                progress(f"{verdict.name}: {'equal' if verdict.equal else 'NOT EQUAL'}")
                verdicts.append(verdict)
    return Equality(tuple(verdicts))


def _claims(spark: SparkSession, settings: Settings, tables: Sequence[Table]) -> Iterator[_Claim]:
    for table in tables:
        if state := state_of(settings, f"gold.{table.name}"):
            rows = read(spark, settings, f"gold.{table.name}", state.version)
            yield _Claim(f"gold.{table.name}", table, state.cut, rows)
        served = serving(spark, settings, table)
        if served is not None:
            fresh = state_of(settings, f"speed.{table.name}") or state_of(settings, f"batch.{table.name}")
            assert fresh
            yield _Claim(f"serving.{table.name}", table, fresh.cut, served)


def _judged(spark: SparkSession, settings: Settings, claims: Sequence[_Claim], silver: Everything) -> Iterator[Verdict]:
    """Both sides are written down first: see `compare`."""
    folder = f"{settings.lake}/_scratch/verify"
    for _, together in groupby(claims, key=lambda claim: claim.table.name):
        group = list(together)
        table = group[0].table
        expected = _written(spark, f"{folder}/expected/{table.name}", table.compute(silver(table.scope)))
        for claim in group:
            rows = claim.rows
            if claim.name.startswith("serving."):
                rows = _written(spark, f"{folder}/{claim.name}", rows)
            yield Verdict(claim.name, claim.cut, compare(rows, expected, claim.table.key))


def _written(spark: SparkSession, path: str, rows: DataFrame) -> DataFrame:
    rows.write.mode("overwrite").parquet(path)
    return spark.read.parquet(path)
