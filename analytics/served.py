"""What Lambda serves: `batch.*` as of its cut, and `speed.*` laid over it. In SQL that Spark and DuckDB both read.

A commit of a speed table says over which version of batch it is laid, and how: who reads it needs nothing else.
"""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import asdict, dataclass
from typing import Any

from analytics.commits import versions
from shared.settings import Settings

EMPTY = "_empty"
"""A column of speed tables of units: true for one that has no rows any more, though batch has some of it."""

Quoted = Callable[[str], str]
"""The name of a column, as the one who is asked wants it."""


@dataclass(frozen=True)
class Served:
    unit: tuple[str, ...] = ()
    """Of a table of rows: those of speed stand for all that batch has of their units."""
    key: tuple[str, ...] = ()
    """Of a table of sums: those of speed are added to those of batch."""
    figures: tuple[str, ...] = ()
    derived: tuple[tuple[str, str], ...] = ()
    """Columns that follow from the figures, in SQL, with figures in braces."""

    def said(self) -> dict[str, Any]:
        return {name: value for name, value in asdict(self).items() if value}

    @staticmethod
    def told(said: Mapping[str, Any]) -> "Served":
        pairs = tuple((name, sql) for name, sql in said.get("derived", ()))
        return Served(tuple(said.get("unit", ())), tuple(said.get("key", ())), tuple(said.get("figures", ())), pairs)

    def sql(self, batch: str, speed: str, columns: Iterable[str], quoted: Quoted) -> str:
        """`batch` and `speed` as they stand behind FROM; `columns` are those of batch."""
        if self.unit:
            wanted, unit = (", ".join(map(quoted, names)) for names in (columns, self.unit))
            untouched = f"SELECT {wanted} FROM {batch} AS b ANTI JOIN (SELECT {unit} FROM {speed}) AS s USING ({unit})"
            return f"{untouched} UNION ALL SELECT {wanted} FROM {speed} AS n WHERE NOT {quoted(EMPTY)}"
        names = {figure: quoted(figure) for figure in self.figures}
        key, both = ", ".join(map(quoted, self.key)), ", ".join(map(quoted, (*self.key, *self.figures)))
        sums = ", ".join(f"CAST(sum({name}) AS BIGINT) AS {name}" for name in names.values())
        derived = "".join(f", {sql.format_map(names)} AS {quoted(name)}" for name, sql in self.derived)
        rows = f"SELECT {both} FROM {batch} AS b UNION ALL SELECT {both} FROM {speed} AS n"
        added = f"SELECT {key}, {sums} FROM ({rows}) AS r GROUP BY {key}"
        there = " OR ".join(f"{name} <> 0" for name in names.values())
        return f"SELECT {both}{derived} FROM ({added}) AS a WHERE {there}"


def laid_over(settings: Settings, name: str, base: int) -> int:
    """The newest version of that batch table that has the rows of `base`: behind it are compactions."""
    found = None
    for version in versions(settings, f"batch.{name}"):
        found = version.number if found is None else found
        if version.number == base:
            break
        if "silver" in version.said:
            found = None
    return base if found is None else found
