"""The stages between silver and gold, and the part of them that new events affect.

A model is a function of frames. Its parameter names are the names of its inputs, so the order in which models run
follows from their signatures.
"""

import inspect
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from graphlib import TopologicalSorter
from typing import NamedTuple, NewType

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as sf

Frames = Mapping[str, DataFrame]
Silver = NewType("Silver", Frames)
"""Silver tables by name, without their layer: `cart_events`, `order_events`, `payment_events`, `stock_events`."""
Staged = NewType("Staged", Frames)
"""Results of staging models by name: silver in fewer and narrower frames. Every row has the `event_id` of its event."""
Inputs = NewType("Inputs", Frames)
"""Results of staging and intermediate models by name: everything that the function of a gold table may ask for."""
Ids = NewType("Ids", Frames)
"""Ids of affected things, such as carts and orders, by a name that the scope chooses."""

Model = Callable[..., DataFrame]
Keep = Callable[[DataFrame], DataFrame]
"""Marks a frame that is used more than once, so that Spark computes it once."""


class Affected(NamedTuple):
    """Everything that is needed to bring the tables of a scope up to date with new events."""

    new: Staged
    ids: Ids
    before: Inputs
    """All events of the affected ids, without the new ones."""
    after: Inputs
    """All events of the affected ids, with the new ones."""


@dataclass(frozen=True, eq=False)
class Scope:
    """Tells which part of silver new events affect. Tables with the same scope share the search and what it reads."""

    staging: tuple[Model, ...]
    """Models over silver tables. Plans over all columns of all event types are slow to make: these keep a few."""
    affected_ids: Callable[[Staged, Staged], Ids]
    """(new rows, all rows) -> the ids that the new rows affect."""
    restricted_to: Callable[[Staged, Ids], Staged]
    """(all rows, ids) -> rows that suffice to recompute those ids. Additional rows do no harm."""
    index: tuple[str, ...]
    """Gold tables that know in which `minutes` the older events of an id happened. They are refreshed first."""
    minutes: Callable[[Staged, Frames], Frames]
    """(new rows, index tables) -> minutes with older events of affected ids, by the staging model that leads to them.

    Minutes under a name whose new rows are empty are not looked up.
    """
    intermediate: tuple[Model, ...] = ()
    """Models over staging and over each other. Each is computed once, however many tables read it."""
    always_read: Mapping[str, str] = field(default_factory=dict)
    """SQL conditions by silver table: rows that are read whatever their minute."""

    @cached_property
    def silver_tables(self) -> tuple[str, ...]:
        """Names of the silver tables that the staging models read."""
        return tuple(dict.fromkeys(name for model in self.staging for name in inputs_of(model)))

    @cached_property
    def input_names(self) -> frozenset[str]:
        """Names that a gold table of this scope may use as parameters."""
        return frozenset(model.__name__ for model in (*self.staging, *self.intermediate))

    def stage(self, silver: Silver) -> Staged:
        return Staged({model.__name__: apply(model, silver) for model in self.staging})

    def inputs(self, staged: Staged, keep: Keep = lambda frame: frame) -> Inputs:
        """Adds the intermediate results to the staged ones."""
        found = dict(staged)
        for model in in_order(self.intermediate):
            found[model.__name__] = keep(apply(model, found))
        return Inputs(found)


def inputs_of(model: Model) -> tuple[str, ...]:
    return tuple(inspect.signature(model).parameters)


def apply(model: Model, frames: Frames) -> DataFrame:
    """Calls a model with the frames that its parameters name."""
    return model(*(frames[name] for name in inputs_of(model)))


def in_order(models: Iterable[Model]) -> list[Model]:
    """Sorts models so that each comes after those it reads."""
    by_name = {model.__name__: model for model in models}
    graph = {name: [it for it in inputs_of(model) if it in by_name] for name, model in by_name.items()}
    return [by_name[name] for name in TopologicalSorter(graph).static_order()]


def minutes_of(time: str) -> Column:
    """Aggregates the minutes in which something happened, for the `minutes` column of an index table."""
    return sf.sort_array(sf.collect_set(sf.date_trunc("minute", time)))
