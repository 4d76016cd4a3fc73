"""Finds what differs between two states of a stream, field by field, and which event made each difference."""

from collections.abc import AsyncIterator, Iterator
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from services.operations.history.fields import Fields, state_fields
from services.operations.reading.stores import Store
from shared.decider import Versioned
from shared.envelope import Recorded

EVENTS_PER_QUERY = 2000


class Change(NamedTuple):
    """A field with its values before and after; None stands for no value."""

    field: str
    """A path: `lines.MUG-350.quantity`."""
    before: Any
    after: Any


class Step(NamedTuple):
    """An event, what it changed, and the state after it."""

    recorded: Recorded
    event: Any
    changes: list[Change]
    state: Any


@dataclass
class TracedChange:
    """A difference between two versions, and the events behind it."""

    change: Change
    last: Recorded | None = None
    """The event that set the field to what it is at the end."""
    events: int = 0
    """The number of events in between that changed the field."""


@dataclass(frozen=True)
class StreamDiff:
    """All differences between two versions of a stream."""

    before: int
    after: int
    changes: list[TracedChange] = field(default_factory=list)


def compare_fields(before: Fields, after: Fields, path: str = "") -> Iterator[Change]:
    """Yields the changes. A group of fields that appears or disappears is one change, not one for each field."""
    for name in {**before, **after}:
        old, new = before.get(name), after.get(name)
        if isinstance(old, dict) and isinstance(new, dict):
            yield from compare_fields(old, new, f"{path}{name}.")
        elif (old := _none_if_empty(old)) != (new := _none_if_empty(new)):
            yield Change(f"{path}{name}", old, new)


async def read_steps(store: Store, start: Versioned[Any], up_to: int) -> AsyncIterator[Step]:
    """Yields the events after `start` up to a version, each with what it changed."""
    decider, state, version = store.decider, start.state, start.version
    while version < up_to:
        found = await store.events.history(start.stream_id, after=version, version=up_to, limit=EVENTS_PER_QUERY)
        for recorded in found:
            event = await store.decoder.decode(recorded.value)
            order_id = getattr(event, "order_id", "") if decider.category == "stock" else None
            before, state = state, decider.evolve(state, event)
            old, new = (state_fields(it, decider.initial, order_id) for it in (before, state))
            yield Step(recorded, event, list(compare_fields(old, new)), state)
        version += len(found)
        if not found:
            return


async def diff_stream(store: Store, start: Versioned[Any], end: Versioned[Any]) -> StreamDiff:
    """Finds the net difference between two states: a field that was changed and changed back is not in it."""
    initial = store.decider.initial
    net = [
        TracedChange(it) for it in compare_fields(state_fields(start.state, initial), state_fields(end.state, initial))
    ]
    at_or_below: dict[str, list[TracedChange]] = {}
    for traced in net:
        for path in _with_parents(traced.change.field):
            at_or_below.setdefault(path, []).append(traced)
    exact = {traced.change.field: [traced] for traced in net}
    async for step in read_steps(store, start, end.version):
        affected = {id(it): it for change in step.changes for it in _affected(change, at_or_below, exact)}
        for traced in affected.values():
            traced.last = step.recorded
            traced.events += 1
    return StreamDiff(start.version, end.version, net)


def _affected(
    change: Change, at_or_below: dict[str, list[TracedChange]], exact: dict[str, list[TracedChange]]
) -> Iterator[TracedChange]:
    """Yields the differences of the changed field itself, of fields within it, and of fields it is part of."""
    yield from at_or_below.get(change.field, ())
    for parent in _with_parents(change.field)[1:]:
        yield from exact.get(parent, ())


def _with_parents(path: str) -> list[str]:
    """Turns `a.b.c` into `a.b.c`, `a.b`, `a`."""
    names = path.split(".")
    return [".".join(names[:n]) for n in range(len(names), 0, -1)]


def _none_if_empty(value: Any) -> Any:
    return None if value in ({}, []) else value
