"""What a gold table is: a function of silver, and what of it new events can change.

Batch computes all of it, the stream only what the new events concern. The same functions, hence the same rows.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import reduce
from operator import or_

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as sf

Silver = Mapping[str, DataFrame]
"""By name, without the layer: `cart_events`, `order_events`, `payment_events`, `stock_events`; and a scope's views."""
Filters = Mapping[str, Column]
"""By name of a silver table: which rows to read of it. In literals, so that Delta can skip files by it."""
Keep = Callable[[DataFrame], DataFrame]
"""Marks a frame that is used more than once."""


@dataclass(frozen=True, eq=False)
class Scope:
    """What of silver new rows concern. Tables that share a scope have it found and read once."""

    concerned: Callable[[Silver, Silver], Mapping[str, DataFrame]]
    """(new rows, all rows; both flat) -> by name, the ids of what the new rows concern."""
    narrowed: Callable[[Silver, Mapping[str, DataFrame]], Silver]
    """(all rows, those ids) -> rows that suffice for all that the new ones change. More of them do no harm."""
    flat: Callable[[Silver], Silver] = lambda silver: silver
    """What of silver the tables need, in fewer and narrower frames: plans over all types of events are slow to make."""
    views: Mapping[str, Callable[[Silver], DataFrame]] = field(default_factory=dict)
    """Frames that several tables are made of, each computed once; the functions of tables find them beside silver."""
    known: tuple[str, ...] = ()
    """Gold tables that tell where older rows are. They are brought up to date first."""
    filters: Callable[[Silver, Mapping[str, DataFrame]], Filters] = lambda _new, _known: {}
    """(new rows, the known tables, which have seen all older rows) -> where older rows that matter are.

    A silver table that it does not name is read in full.
    """

    def seen(self, silver: Silver, keep: Keep = lambda frame: frame) -> Silver:
        """Flat, and with the views."""
        return self.viewed(self.flat(silver), keep)

    def viewed(self, flat: Silver, keep: Keep = lambda frame: frame) -> Silver:
        """A view may be made of those before it."""
        found = dict(flat)
        for name, view in self.views.items():
            found[name] = keep(view(found))
        return found


EVERYTHING = Scope(concerned=lambda _new, _rows: {}, narrowed=lambda rows, _concerned: rows)


@dataclass(frozen=True)
class Gold:
    """A table of rows in units: a unit is computed again as soon as a new event touches it."""

    name: str
    about: str
    reads: tuple[str, ...]
    key: tuple[str, ...]
    """Columns that tell its rows apart."""
    unit: tuple[str, ...]
    """Columns of `key`: rows that agree in them are computed together, from the same rows of silver."""
    compute: Callable[[Silver], DataFrame]
    touched: Callable[[Silver, Silver], DataFrame]
    """(new rows, all rows) -> the units, columns as in `unit`, that the new rows may change."""
    narrowed: Callable[[Silver, DataFrame], Silver]
    """(all rows, units) -> rows that suffice to compute those units. Rows of other units among them do no harm."""
    scope: Scope = EVERYTHING
    """`touched` and `narrowed` are given its rows as all rows."""
    time: str = ""
    """A column that hardly changes and by which rows lie together, to find those to be replaced."""
    version: int = 1
    """Of the logic. Raised when rows come out otherwise: the table then waits for `till lake replay`."""


@dataclass(frozen=True)
class Tally:
    """A table of sums, to which every cart and every order adds its own: the stream adds what of that has changed.

    A unit would not do: the sales of a day would be added up anew whenever somebody buys something.
    """

    name: str
    about: str
    reads: tuple[str, ...]
    key: tuple[str, ...]
    figures: tuple[str, ...]
    """Whole numbers. A row whose figures are all 0 is not there."""
    facts: Callable[[Silver], DataFrame]
    """Rows of `key` and `figures`, to be added up."""
    scope: Scope
    derived: tuple[tuple[str, str], ...] = ()
    """Columns that follow from the figures of a row, like rates: in SQL, with figures in braces."""
    version: int = 1

    def compute(self, silver: Silver) -> DataFrame:
        return self.added_up(self.facts(silver))

    def added_up(self, facts: DataFrame) -> DataFrame:
        derived = (column.alias(name) for name, column in self.follows(lambda figure: f"`{figure}`").items())
        return self._sums(facts).select("*", *derived)

    def follows(self, figure: Callable[[str], str]) -> dict[str, Column]:
        """The derived columns, of figures that are called so."""
        named = {name: figure(name) for name in self.figures}
        return {column: sf.expr(sql.format_map(named)) for column, sql in self.derived}

    def difference(self, before: Silver, after: Silver) -> DataFrame:
        """What is to be added to the table that had seen the one, so that it has seen the other."""
        undone = self.facts(before).select(*self.key, *((-sf.col(figure)).alias(figure) for figure in self.figures))
        return self._sums(self.facts(after).select(*self.key, *self.figures).unionByName(undone))

    def _sums(self, facts: DataFrame) -> DataFrame:
        added = facts.groupBy(*self.key).agg(*(sf.sum(figure).cast("bigint").alias(figure) for figure in self.figures))
        return added.where(reduce(or_, (sf.col(figure) != 0 for figure in self.figures)))


Table = Gold | Tally
