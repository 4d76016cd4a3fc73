"""Declares gold tables: a function of named inputs, its key, and how new events change its result.

`@table` declares rows that are recomputed, `@tally` declares sums to which differences are added. A full recomputation
and an incremental refresh call the same function.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import reduce
from inspect import getdoc
from operator import or_

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as sf

from analytics.incremental.scope import Affected, Inputs, Model, Scope, apply, inputs_of

Key = str | tuple[str, ...]


@dataclass(frozen=True, eq=False)
class RowTable:
    """A table of rows in units, such as all rows of one cart. Units that new events affect are recomputed."""

    name: str
    description: str
    key: tuple[str, ...]
    """Columns that identify a row."""
    unit: tuple[str, ...]
    """Columns of `key`. Rows that agree in them are recomputed and replaced together."""
    model: Model
    affected: Callable[[Affected], DataFrame]
    """Returns the units, columns as in `unit`, that new events may change. Missing one makes the table wrong."""
    scope: Scope
    time: str
    """A column that hardly changes and by which rows lie together in files: it bounds the search for them."""
    version: int
    """Version of the logic. Raise it when rows come out differently: the table then waits for `till lake replay`."""

    def compute(self, inputs: Inputs) -> DataFrame:
        return apply(self.model, inputs)


@dataclass(frozen=True, eq=False)
class Tally:
    """A table of sums. Every cart and order contributes to it; a refresh adds how its contribution has changed.

    Recomputing units would be too slow: every purchase would sum up the sales of its day again.
    """

    name: str
    description: str
    key: tuple[str, ...]
    figures: tuple[str, ...]
    """Columns of whole numbers that are summed up. A row whose figures are all 0 is left out."""
    model: Model
    """Returns contributions: rows of `key` and `figures`, to be summed up."""
    scope: Scope
    derived: tuple[tuple[str, str], ...]
    """Columns that follow from the figures of a row, such as rates: their names and SQL, with figures in braces."""
    version: int

    def compute(self, inputs: Inputs) -> DataFrame:
        derived = (column.alias(name) for name, column in self.derived_columns(lambda figure: f"`{figure}`").items())
        return self._sums(apply(self.model, inputs)).select("*", *derived)

    def derived_columns(self, reference: Callable[[str], str]) -> dict[str, Column]:
        """Builds the derived columns; `reference` turns the name of a figure into SQL."""
        named = {name: reference(name) for name in self.figures}
        return {column: sf.expr(sql.format_map(named)) for column, sql in self.derived}

    def difference(self, before: Inputs, after: Inputs) -> DataFrame:
        """Computes what to add to a table that has seen `before`, so that it has seen `after`."""
        undone = apply(self.model, before).select(*self.key, *((-sf.col(name)).alias(name) for name in self.figures))
        return self._sums(apply(self.model, after).select(*self.key, *self.figures).unionByName(undone))

    def _sums(self, contributions: DataFrame) -> DataFrame:
        sums = (sf.sum(figure).cast("bigint").alias(figure) for figure in self.figures)
        return contributions.groupBy(*self.key).agg(*sums).where(reduce(or_, (sf.col(it) != 0 for it in self.figures)))


GoldTable = RowTable | Tally


def table(
    *,
    key: Key,
    scope: Scope,
    affected: Callable[[Affected], DataFrame],
    time: str,
    unit: Key = (),
    version: int = 1,
) -> Callable[[Model], RowTable]:
    """Declares a gold table of rows. The function's name and docstring are the table's name and description."""

    def declare(model: Model) -> RowTable:
        _check(model, scope)
        columns = _columns(key)
        return RowTable(
            name=model.__name__,
            description=_description(model),
            key=columns,
            unit=_columns(unit) or columns,
            model=model,
            affected=affected,
            scope=scope,
            time=time,
            version=version,
        )

    return declare


def tally(
    *,
    key: Key,
    scope: Scope,
    figures: tuple[str, ...],
    derived: Mapping[str, str] | None = None,
    version: int = 1,
) -> Callable[[Model], Tally]:
    """Declares a gold table of sums. The function's name and docstring are the table's name and description."""

    def declare(model: Model) -> Tally:
        _check(model, scope)
        return Tally(
            name=model.__name__,
            description=_description(model),
            key=_columns(key),
            figures=figures,
            model=model,
            scope=scope,
            derived=tuple((derived or {}).items()),
            version=version,
        )

    return declare


def _columns(key: Key) -> tuple[str, ...]:
    return (key,) if isinstance(key, str) else key


def _description(model: Model) -> str:
    text = getdoc(model)
    if not text:
        raise TypeError(f"{model.__name__} needs a docstring: it is the table's description.")
    return " ".join(text.split("\n\n")[0].split())


def _check(model: Model, scope: Scope) -> None:
    if unknown := sorted(set(inputs_of(model)) - scope.input_names):
        known = ", ".join(sorted(scope.input_names))
        raise TypeError(f"{model.__name__} asks for {', '.join(unknown)}; its scope has {known}.")
