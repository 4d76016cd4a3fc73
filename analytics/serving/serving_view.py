"""Lambda's serving layer: `batch.*` as of its cut with `speed.*` laid over it, as SQL that Spark and DuckDB both read.

A commit of a speed table says which version of batch it belongs to, and how it is laid over it. Readers need nothing
else. This module imports no Spark, so that `till sql` starts fast.
"""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

from analytics.lake import Lake, LakeFiles
from analytics.log.commits import ComputedCommit, SpeedCommit

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

EMPTY = "_empty"
"""A column of speed tables: true for a unit that has no rows any more, although batch has some of it."""

Quote = Callable[[str], str]
"""Quotes the name of a column, as the engine that runs the SQL wants it."""


@dataclass(frozen=True)
class ServingView:
    """Lays rows of a speed table over those of a batch table: unit by unit, or by adding figures."""

    unit: tuple[str, ...] = ()
    """Unit of a table of rows: rows of speed replace all that batch has of their units."""
    key: tuple[str, ...] = ()
    """Key of a table of sums: figures of speed are added to those of batch."""
    figures: tuple[str, ...] = ()
    derived: tuple[tuple[str, str], ...] = ()
    """Columns that follow from the figures: names and SQL, with figures in braces."""

    def metadata(self) -> dict[str, Any]:
        return {name: value for name, value in asdict(self).items() if value}

    @staticmethod
    def from_metadata(metadata: Mapping[str, Any]) -> "ServingView":
        columns = {name: tuple(metadata.get(name, ())) for name in ("unit", "key", "figures")}
        return ServingView(**columns, derived=tuple((name, sql) for name, sql in metadata.get("derived", ())))

    def sql(self, batch: str, speed: str, columns: Iterable[str], quote: Quote) -> str:
        """Writes the query. `batch` and `speed` are put after FROM; `columns` are those of batch."""
        if self.unit:
            wanted, unit = (", ".join(map(quote, names)) for names in (columns, self.unit))
            unaffected = f"SELECT {wanted} FROM {batch} AS b ANTI JOIN (SELECT {unit} FROM {speed}) AS s USING ({unit})"
            return f"{unaffected} UNION ALL SELECT {wanted} FROM {speed} AS n WHERE NOT {quote(EMPTY)}"
        names = {figure: quote(figure) for figure in self.figures}
        key, both = ", ".join(map(quote, self.key)), ", ".join(map(quote, (*self.key, *self.figures)))
        sums = ", ".join(f"CAST(sum({name}) AS BIGINT) AS {name}" for name in names.values())
        derived = "".join(f", {sql.format_map(names)} AS {quote(name)}" for name, sql in self.derived)
        rows = f"SELECT {both} FROM {batch} AS b UNION ALL SELECT {both} FROM {speed} AS n"
        added = f"SELECT {key}, {sums} FROM ({rows}) AS r GROUP BY {key}"
        nonzero = " OR ".join(f"{name} <> 0" for name in names.values())
        return f"SELECT {both}{derived} FROM ({added}) AS a WHERE {nonzero}"


def read_serving(lake: Lake, name: str) -> "DataFrame | None":
    """Reads the view in Spark; None where there is no batch yet. `name` is that of the gold table."""
    batch = lake.log(f"batch.{name}").newest(ComputedCommit)
    speed = lake.log(f"speed.{name}").newest(SpeedCommit)
    if batch is None or speed is None:
        return lake.read(f"batch.{name}", batch.latest) if batch else None
    then = lake.read(f"batch.{name}", batch_version(lake, name, speed.commit))
    since = lake.read(f"speed.{name}", speed.latest)
    both = ServingView.from_metadata(speed.commit.served).sql("{then}", "{since}", then.columns, backticks)
    return lake.spark.sql(both, then=then, since=since)


def batch_version(lake: LakeFiles, name: str, speed: SpeedCommit) -> int:
    """Finds the newest version of the batch table that has the rows a speed commit belongs to."""
    spans = lake.log(f"batch.{name}").spans(ComputedCommit)
    return next((span.latest for span in spans if span.version == speed.base), speed.base)


def backticks(name: str) -> str:
    """Quotes a name for Spark SQL."""
    return f"`{name}`"
